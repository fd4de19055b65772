/** Collections, items and indexes: their fields, entity tags and HTML pages. Conformance tests cover pages, links and arguments. */
import assert from 'node:assert/strict';
import Koa from 'koa';
import mount from 'koa-mount';
import request from 'supertest';
import { books, createBookApp, serveBooks } from './book-app.ts';

const library = serveBooks();

describe('a collection', () => {
  it('responds 304 to its entity tag until an item changes', async () => {
    let shelf = books;
    const changing = serveBooks(() => shelf);
    const { headers } = await request(changing).get('/books/').expect(200);
    const again = () => request(changing).get('/books/').set('If-None-Match', String(headers['etag']));
    const { headers: known } = await again().expect(304, '');
    for (const name of ['etag', 'link', 'vary']) assert.equal(known[name], headers[name], name);
    shelf = books.map((book) => ({ ...book, title: `${book.title}!` }));
    assert.notEqual((await again().expect(200)).headers['etag'], headers['etag']);
  });

  it('has no offset with a cursor, and responds 400 when the cursor of the next page would be too long for a URL', async () => {
    const shelf = serveBooks(() => books.map((book) => ({ ...book, title: 'x'.repeat(5000) })));
    const { body } = await request(shelf).get('/books/?sort=title&limit=1&after=start').expect(400);
    assert.match(body.errors[0].detail, /too long/);
    const page = await request(shelf).get('/books/?limit=1&after=start').expect(200);
    assert.deepEqual(Object.keys(page.body), ['items', 'limit', 'total', 'links']);
  });

  it('renders an HTML page with its title as heading, and escapes all values', async () => {
    const { text } = await request(library).get('/books/').set('Accept', 'text/html').expect(200);
    assert.match(text, /<h1>Books<\/h1>/);
    assert.ok(text.includes('&#60;Tristram&#62; &#38; &#34;Shandy&#34;') && !text.includes('<Tristram>'));
  });
});

describe('an item', () => {
  const tagOf = async (url: string, accept = 'application/json') =>
    String((await request(library).get(url).set('Accept', accept).expect(200)).headers['etag']);

  it('shows only its public fields', async () => {
    const { text } = await request(library).get('/books/2').expect(200);
    assert.equal(text, '{"id":2,"title":"Ulysses","url":"https://library.test/books/2"}');
  });

  it('has an entity tag that begins with its version and differs between representations and selected fields', async () => {
    const different = [
      await tagOf('/books/2'),
      await tagOf('/books/2', 'application/yaml'),
      await tagOf('/books/2', 'text/html'),
      await tagOf('/books/2?fields=id'),
      await tagOf('/books/2?fields=id,title'),
    ];
    for (const tag of different) assert.match(tag, /^"4-[\da-z]{1,7}"$/);
    assert.equal(new Set(different).size, different.length);
    assert.equal(await tagOf('/books/2?fields=*'), different[0]);
    assert.equal(await tagOf('/books/2?fields=title,id'), different.at(-1));
  });

  it('has a digest as its entity tag when it has no version', async () => {
    const [one, same, other] = [await tagOf('/notes/1'), await tagOf('/notes/1'), await tagOf('/notes/2')];
    assert.equal(one, same);
    assert.notEqual(one, other);
    assert.match(one, /^"[\w-]{22}"$/);
  });
});

describe('an index', () => {
  it('lists the absolute URLs of the collections, including the mount path', async () => {
    const entries = { books: 'https://library.test/books/', notes: 'https://library.test/notes/' };
    const { headers } = await request(library).get('/').expect(200, entries);
    await request(library).get('/').set('If-None-Match', String(headers['etag'])).expect(304);
    const app = new Koa().use(mount('/travel', createBookApp()));
    const { body } = await request(app.callback()).get('/travel/').expect(200);
    assert.match(body.books, /^http:\/\/127\.0\.0\.1:\d+\/travel\/books\/$/);
  });
});
