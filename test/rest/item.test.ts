/** Items and indexes: their fields and entity tags. */
import assert from 'node:assert/strict';
import Koa from 'koa';
import mount from 'koa-mount';
import request from 'supertest';
import { createBookApp, serveBooks } from './book-app.ts';

const library = serveBooks();

describe('an item', () => {
  const tagOf = async (url: string, accept = 'application/json') =>
    String((await request(library).get(url).set('Accept', accept).expect(200)).headers['etag']);

  it('shows only its public fields', async () => {
    const { text } = await request(library).get('/books/2').expect(200);
    assert.equal(text, '{"id":2,"title":"Ulysses","url":"https://library.test/books/2"}');
  });

  for (const [search, accept, tag] of [
    ['', 'application/json', '"4-json"'],
    ['', 'application/yaml', '"4-yaml"'],
    ['', 'text/html', '"4-html"'],
    ['?fields=id', 'application/json', '"4-id-json"'],
    ['?fields=id,title', 'application/json', '"4-id.title-json"'],
    ['?fields=title,id', 'application/json', '"4-id.title-json"'],
    ['?fields=*', 'application/json', '"4-json"'],
  ] as const)
    it(`has an entity tag made of version, selected fields and representation: ${tag} for ${search} ${accept}`, async () => {
      assert.equal(await tagOf(`/books/2${search}`, accept), tag);
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
