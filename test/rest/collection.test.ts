/** Collections: pages of items with links, and their query arguments. */
import assert from 'node:assert/strict';
import Koa from 'koa';
import mount from 'koa-mount';
import request from 'supertest';
import { type Book, books, createBookApp, serveBooks } from './book-app.ts';

describe('a collection', () => {
  const library = serveBooks();
  const read = async (url: string) => (await request(library).get(url).expect(200)).body;

  it('returns items, position, total and links, and the same links in a Link header', async () => {
    const at = (offset: number) => `/books/?offset=${offset}&limit=2`;
    const links = { self: at(1), first: at(0), prev: at(0), next: at(3), last: at(4) };
    const items = [
      { id: 2, title: 'Ulysses', url: 'https://library.test/books/2' },
      { id: 3, title: 'Middlemarch', url: 'https://library.test/books/3' },
    ];
    const response = request(library).get('/books/?offset=1&limit=2');
    const { headers } = await response.expect(200, { items, offset: 1, limit: 2, total: 5, links });
    const found = [...String(headers['link']).matchAll(/<([^>]*)>; rel="(\w+)"/g)].map(([, to, name]) => [name, to]);
    assert.deepEqual(found, Object.entries(links));
  });

  it('includes the mount path in its links', async () => {
    const app = new Koa().use(mount('/travel', createBookApp())).callback();
    const { body, headers } = await request(app).get('/travel/books/?limit=2').expect(200);
    assert.equal(body.links.next, '/travel/books/?offset=2&limit=2');
    assert.ok(String(headers['link']).includes('</travel/books/?offset=2&limit=2>; rel="next"'));
    await request(app).get(body.links.next).expect(200);
  });

  it('shows every item once when following its links forward or back', async () => {
    const follow = async (from: string, relation: string) => {
      const pages: number[][] = [];
      for (let link: string | undefined = from; link !== undefined; ) {
        const { items, links } = await read(link);
        pages.push(items.map(({ id }: Book) => id));
        link = links[relation];
      }
      return pages;
    };
    assert.deepEqual(await follow('/books/?limit=2', 'next'), [[1, 2], [3, 4], [5]]);
    assert.deepEqual(await follow('/books/?limit=2&offset=4', 'prev'), [[5], [3, 4], [1, 2]]);
  });

  it('has 20 items per page by default, and at most 100', async () => {
    const many = serveBooks(() => Array.from({ length: 130 }, (_, id) => ({ id, title: 'x', revision: 1 })));
    for (const [search, count] of [
      ['', 20],
      ['?limit=101', 100],
    ] as const) {
      const { items, limit, total } = (await request(many).get(`/books/${search}`).expect(200)).body;
      assert.deepEqual([items.length, limit, total], [count, count, 130]);
    }
  });

  it('shows the requested fields in the order of the view, and preserves `fields` in its links', async () => {
    const { items, links } = await read('/books/?fields=title,id&limit=1');
    assert.equal(JSON.stringify(items), '[{"id":1,"title":"Emma"}]');
    assert.equal(links.next, '/books/?fields=title%2Cid&offset=1&limit=1');
  });

  it('reports all invalid arguments together, and lists the known ones', async () => {
    const search = '?limit=0&offset=-1&fields=isbn&colour=red&id=x&id=y';
    const { body } = await request(library).get(`/books/${search}`).expect(400);
    assert.equal(body.message, '400: Bad Request');
    const pointers = body.errors.map(({ parameter }: { parameter: string }) => parameter).sort();
    const names = ['colour', 'fields', 'id', 'limit', 'offset'];
    assert.deepEqual(pointers, names);
    assert.match(JSON.stringify(body.errors), /known: id, title, url/);
  });

  it('has no total and no last link with total=false', async () => {
    const body = await read('/books/?limit=2&total=false');
    assert.deepEqual(Object.keys(body), ['items', 'offset', 'limit', 'links']);
    assert.equal(body.links.last, undefined);
  });

  it('responds 404 when the collection does not exist', async () => {
    const { body } = await request(library).get('/closed/').expect(404);
    assert.equal(body.detail, 'The stacks are closed.');
  });

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
