/** Reading: cursors that are too long, and entity tags without a version. Conformance tests cover everything else. */
import assert from 'node:assert/strict';
import request from 'supertest';
import { books, serveBooks } from './book-app.ts';

describe('a collection', () => {
  it('has no offset with a cursor, and responds 400 when the cursor of the next page would be too long for a URL', async () => {
    const shelf = serveBooks(() => books.map((book) => ({ ...book, title: 'x'.repeat(5000) })));
    const { body } = await request(shelf).get('/books/?sort=title&limit=1&after=start').expect(400);
    assert.match(body.errors[0].detail, /too long/);
    const page = await request(shelf).get('/books/?limit=1&after=start').expect(200);
    assert.deepEqual(Object.keys(page.body), ['items', 'limit', 'total', 'links']);
  });
});

describe('an item', () => {
  it('has a digest as its entity tag when it has no version', async () => {
    const library = serveBooks();
    const tagOf = async (url: string) => String((await request(library).get(url).expect(200)).headers['etag']);
    const [one, same, other] = [await tagOf('/notes/1'), await tagOf('/notes/1'), await tagOf('/notes/2')];
    assert.equal(one, same);
    assert.notEqual(one, other);
    assert.match(one, /^"[\w-]{22}"$/);
  });
});
