/** Collections, items and indexes as their clients see them. */
import assert from 'node:assert/strict';
import Koa from 'koa';
import mount from 'koa-mount';
import request, { type Response } from 'supertest';
import { createRequestContext } from '#http';
import { createAddresses } from '../../src/http/addresses.ts';
import { type Book, books, createBookApp } from './book-app.ts';

/** Known by one address, so that tags which depend on it are the same at each request. */
function serve(shelf?: () => readonly Book[]) {
  const app = new Koa();
  app.use(createRequestContext(createAddresses({ publicUrl: 'https://library.test' })));
  app.use(mount(createBookApp(shelf === undefined ? {} : { shelf })));
  return app.callback();
}

const library = serve();

describe('a collection', () => {
  it('is an envelope of items, position, total and links', async () => {
    await request(library)
      .get('/books/?offset=1&limit=2')
      .expect(200, {
        items: [
          { id: 2, title: 'Ulysses', url: 'https://library.test/books/2' },
          { id: 3, title: 'Middlemarch', url: 'https://library.test/books/3' },
        ],
        offset: 1,
        limit: 2,
        total: 5,
        links: {
          self: '/books/?offset=1&limit=2',
          first: '/books/?offset=0&limit=2',
          prev: '/books/?offset=0&limit=2',
          next: '/books/?offset=3&limit=2',
          last: '/books/?offset=4&limit=2',
        },
      });
  });

  it('has the same links in its Link header, in the same order', async () => {
    const { body, headers } = await request(library).get('/books/?offset=2&limit=2').expect(200);
    const told = [...String(headers['link']).matchAll(/<([^>]*)>; rel="(\w+)"/g)].map(([, to, name]) => [name, to]);
    assert.deepEqual(told, Object.entries(body.links));
  });

  it('has links that lead back to it wherever it is mounted', async () => {
    const app = new Koa().use(mount('/travel', createBookApp()));
    const { body, headers } = await request(app.callback()).get('/travel/books/?limit=2').expect(200);
    assert.equal(body.links.next, '/travel/books/?offset=2&limit=2');
    assert.ok(String(headers['link']).includes('</travel/books/?offset=2&limit=2>; rel="next"'));
    await request(app.callback()).get(body.links.next).expect(200);
  });

  it('is walked through by its links, forward and back, without a gap or a repetition', async () => {
    const walk = async (from: string, relation: string) => {
      const ids: number[][] = [];
      let link: string | undefined = from;
      while (link !== undefined) {
        const answer: Response = await request(library).get(link).expect(200);
        ids.push(answer.body.items.map(({ id }: Book) => id));
        link = answer.body.links[relation];
      }
      return ids;
    };
    assert.deepEqual(await walk('/books/?limit=2', 'next'), [[1, 2], [3, 4], [5]]);
    assert.deepEqual(await walk('/books/?limit=2&offset=4', 'prev'), [[5], [3, 4], [1, 2]]);
  });

  it('has 20 items on a page, and takes a limit above 100 as 100', async () => {
    const many = serve(() => Array.from({ length: 130 }, (_, index) => ({ id: index + 1, title: 'x', revision: 1 })));
    const page = async (search: string) => {
      const { body } = await request(many).get(`/books/${search}`).expect(200);
      return { count: body.items.length, limit: body.limit, total: body.total };
    };
    assert.deepEqual(await page(''), { count: 20, limit: 20, total: 130 });
    assert.deepEqual(await page('?limit=101'), { count: 100, limit: 100, total: 130 });
  });

  it('shows the fields that are asked for, in the order of the view, and keeps them in its links', async () => {
    const { body } = await request(library).get('/books/?fields=title,id&limit=1').expect(200);
    assert.deepEqual(Object.entries(body.items[0]), [
      ['id', 1],
      ['title', 'Emma'],
    ]);
    assert.equal(body.links.next, '/books/?fields=title%2Cid&offset=1&limit=1');
  });

  it('names all bad arguments at once, and what it knows', async () => {
    const { body } = await request(library)
      .get('/books/?limit=0&offset=-1&fields=isbn&colour=red&id=x&id=y')
      .expect(400);
    assert.equal(body.message, '400: Bad Request');
    assert.deepEqual(
      body.errors.map(({ pointer }: { pointer: string }) => pointer).sort(),
      ['#/query/colour', '#/query/fields', '#/query/id', '#/query/limit', '#/query/offset'].sort(),
    );
    assert.match(JSON.stringify(body.errors), /known: id, title, url/);
  });

  it('tells no total to whoever does not want one', async () => {
    const { body } = await request(library).get('/books/?limit=2&total=false').expect(200);
    assert.deepEqual(Object.keys(body), ['items', 'offset', 'limit', 'links']);
    assert.equal(body.links.last, undefined);
  });

  it('can be missing as a whole', async () => {
    const { body } = await request(library).get('/closed/').expect(404);
    assert.equal(body.detail, 'The stacks are closed.');
  });

  it('is 304 to whoever has it, until a row of it changes', async () => {
    let shelf = books;
    const changing = serve(() => shelf);
    const { headers } = await request(changing).get('/books/').expect(200);
    const again = () => request(changing).get('/books/').set('If-None-Match', String(headers['etag']));
    const known = await again().expect(304, '');
    assert.equal(known.headers['etag'], headers['etag']);
    assert.equal(known.headers['link'], headers['link']);
    assert.equal(known.headers['vary'], 'Accept');
    shelf = books.map((book) => ({ ...book, title: `${book.title}!` }));
    const { headers: changed } = await again().expect(200);
    assert.notEqual(changed['etag'], headers['etag']);
  });

  it('is a page for people under its title, with everything escaped', async () => {
    const { text } = await request(library).get('/books/').set('Accept', 'text/html').expect(200);
    assert.match(text, /<h1>Books<\/h1>/);
    assert.ok(text.includes('&#60;Tristram&#62; &#38; &#34;Shandy&#34;'));
    assert.ok(!text.includes('<Tristram>'));
  });
});

describe('an item', () => {
  const tagOf = async (url: string, accept = 'application/json') => {
    const { headers } = await request(library).get(url).set('Accept', accept).expect(200);
    return String(headers['etag']);
  };

  it('is its public fields and nothing else', async () => {
    const { text } = await request(library).get('/books/2').expect(200);
    assert.equal(text, '{"id":2,"title":"Ulysses","url":"https://library.test/books/2"}');
  });

  it('has a tag made of its version and the representation', async () => {
    assert.equal(await tagOf('/books/2'), '"4-json"');
    assert.equal(await tagOf('/books/2', 'application/yaml'), '"4-yaml"');
    assert.equal(await tagOf('/books/2', 'text/html'), '"4-html"');
  });

  it('has another tag for each selection of fields, whatever their order in the request', async () => {
    assert.equal(await tagOf('/books/2?fields=id'), '"4-id-json"');
    assert.equal(await tagOf('/books/2?fields=title,id'), await tagOf('/books/2?fields=id,title'));
    assert.equal(await tagOf('/books/2?fields=*'), '"4-json"');
  });

  it('has a digest for a tag when it has no version', async () => {
    const [one, same, other] = [await tagOf('/notes/1'), await tagOf('/notes/1'), await tagOf('/notes/2')];
    assert.equal(one, same);
    assert.notEqual(one, other);
    assert.match(one, /^"[\w-]{22}"$/);
  });

  for (const collection of ['books', 'notes']) {
    it(`is 304 to whoever has it, until it changes: ${collection}`, async () => {
      let shelf = books;
      const changing = serve(() => shelf);
      const { headers } = await request(changing).get(`/${collection}/1`).expect(200);
      const again = () => request(changing).get(`/${collection}/1`).set('If-None-Match', String(headers['etag']));
      const known = await again().expect(304, '');
      assert.equal(known.headers['content-type'], undefined);
      assert.equal(known.headers['etag'], headers['etag']);
      shelf = [{ id: 1, title: 'Emma, revised', revision: 2 }];
      const { body } = await again().expect(200);
      assert.equal(body.title, 'Emma, revised');
    });
  }

  it('is not 304 to whoever has another representation or selection of it', async () => {
    const known = await tagOf('/books/2');
    const ask = (url: string) => request(library).get(url).set('If-None-Match', known);
    await ask('/books/2').set('Accept', 'application/yaml').expect(200);
    await ask('/books/2?fields=id').expect(200);
    await ask('/books/2').expect(304);
  });

  it('takes `fields` and no other argument', async () => {
    await request(library).get('/books/2?fields=title').expect(200, { title: 'Ulysses' });
    const { body } = await request(library).get('/books/2?fields=isbn&limit=1').expect(400);
    assert.deepEqual(body.errors, [
      { pointer: '#/query/fields', detail: '"isbn" is no field; known: id, title, url' },
      { pointer: '#/query/limit', detail: '"limit" is no argument here; known: fields' },
    ]);
  });
});

describe('an index', () => {
  it('names the collections with their absolute URLs, mount path included', async () => {
    await request(library)
      .get('/')
      .expect(200, { books: 'https://library.test/books/', notes: 'https://library.test/notes/' });
    const app = new Koa().use(mount('/travel', createBookApp()));
    const { body } = await request(app.callback()).get('/travel/').expect(200);
    assert.match(body.books, /^http:\/\/127\.0\.0\.1:\d+\/travel\/books\/$/);
  });

  it('takes `fields` as any other resource does, and names each argument that it does not take', async () => {
    await request(library).get('/?fields=notes').expect(200, { notes: 'https://library.test/notes/' });
    const { body } = await request(library).get('/?limit=1&a%2Fb=2').expect(400);
    assert.deepEqual(body.errors, [
      { pointer: '#/query/limit', detail: '"limit" is no argument here; known: fields' },
      { pointer: '#/query/a~1b', detail: '"a/b" is no argument here; known: fields' },
    ]);
  });

  it('is 304 to whoever has it', async () => {
    const { headers } = await request(library).get('/').expect(200);
    await request(library).get('/').set('If-None-Match', String(headers['etag'])).expect(304);
  });
});
