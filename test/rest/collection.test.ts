/** Collections: entity tags and HTML pages. Conformance tests cover pages, links and arguments. */
import assert from 'node:assert/strict';
import request from 'supertest';
import { books, serveBooks } from './book-app.ts';

describe('a collection', () => {
  const library = serveBooks();

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

  it('renders an HTML page with its title as heading, and escapes all values', async () => {
    const { text } = await request(library).get('/books/').set('Accept', 'text/html').expect(200);
    assert.match(text, /<h1>Books<\/h1>/);
    assert.ok(text.includes('&#60;Tristram&#62; &#38; &#34;Shandy&#34;') && !text.includes('<Tristram>'));
  });
});
