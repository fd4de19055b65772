/** Resources as an app: which paths and methods it knows, and what it says of all others. */
import assert from 'node:assert/strict';
import Koa from 'koa';
import mount from 'koa-mount';
import request from 'supertest';
import { z } from 'zod';
import { builtInFormatters, createRepresentations, problem } from '#http';
import { createView } from '#query';
import { createResourceApp, index, item } from '#rest';
import { createBookApp } from './book-app.ts';

const notFound = { code: 404, message: '404: Not Found' };
const allow = 'GET, HEAD, OPTIONS';

function serve(options?: Parameters<typeof createBookApp>[0]) {
  return createBookApp(options).callback();
}

describe('createResourceApp', () => {
  const library = serve();

  for (const path of ['/', '/books/', '/books/1', '/notes/1']) {
    it(`answers GET ${path}`, async () => {
      await request(library).get(path).expect(200).expect('Content-Type', 'application/json').expect('Vary', 'Accept');
    });
  }

  for (const path of ['/nowhere', '/nowhere/', '/books/9', '/books/1/2', '/Books/', '/BOOKS/1', '/books//', '/notes']) {
    it(`answers 404 and the error body to ${path}`, async () => {
      const { headers } = await request(library).get(path).expect(404, notFound);
      assert.equal(headers['content-type'], 'application/json');
      assert.equal(headers['location'], undefined);
    });
  }

  for (const path of ['/books/1/', '/notes/1/', '/books/9/', '/broken/']) {
    it(`answers 404 to an item with a slash at the end, whether it is there or not: ${path}`, async () => {
      await request(library).get(path).expect(404, notFound);
    });
  }

  it('takes an id in percent-encoding for the same id', async () => {
    const { body } = await request(library).get('/books/%31').expect(200);
    assert.equal(body.id, 1);
  });

  it('takes an id whose percent-encoding is broken for one that is not there', async () => {
    await request(library).get('/books/%zz').expect(404, notFound);
  });

  it('writes its errors in the representation that is asked for', async () => {
    const asked = (accept: string) => request(library).get('/nowhere').set('Accept', accept).expect(404);
    assert.equal((await asked('application/yaml')).text, 'code: 404\nmessage: "404: Not Found"\n');
    assert.match((await asked('text/html')).text, /<h1>404: Not Found<\/h1>/);
    const { body, headers } = await asked('application/problem+json');
    assert.equal(headers['content-type'], 'application/problem+json');
    assert.deepEqual(body, { type: 'about:blank', title: 'Not Found', status: 404, ...notFound });
  });

  it('answers 406 to what it cannot make, and says what it can', async () => {
    const { body } = await request(library).get('/books/1').set('Accept', 'image/png').expect(406);
    assert.equal(body.detail, 'This resource comes as application/json, application/yaml, text/html.');
  });

  it('makes the representations that it is given and no others', async () => {
    const plain = serve({ representations: createRepresentations(builtInFormatters.slice(0, 1)) });
    await request(plain).get('/books/1').expect(200);
    const { body } = await request(plain).get('/books/1').set('Accept', 'text/html').expect(406);
    assert.equal(body.detail, 'This resource comes as application/json.');
  });

  it('tells the log of what broke, and the client nothing of it', async () => {
    const errors: unknown[] = [];
    const logger = { info() {}, warn() {}, error: (fields: object) => void errors.push(fields) };
    const { text } = await request(serve({ logger })).get('/broken').expect(500);
    assert.deepEqual(JSON.parse(text), { code: 500, message: '500: Internal Server Error' });
    assert.match(JSON.stringify(errors.map((one) => String(Object(one).err))), /the shelf fell over/);
  });

  it('puts the errors of other modules in the terms that it is given', async () => {
    const toProblem = (thrown: unknown) =>
      thrown instanceof Error && thrown.message.includes('shelf')
        ? problem('storage-unavailable', { headers: { 'Retry-After': '1' } })
        : undefined;
    const quiet = { info() {}, warn() {}, error() {} };
    await request(serve({ toProblem, logger: quiet }))
      .get('/broken')
      .expect(503)
      .expect('Retry-After', '1');
    await request(serve({ toProblem, logger: quiet }))
      .get('/nowhere')
      .expect(404, notFound);
  });
});

describe('a collection without its slash', () => {
  function check(url: string, prefix: string, location: string) {
    it(`is redirected from ${url} to ${location}`, async () => {
      const host = new Koa();
      host.use(prefix === '' ? mount(createBookApp()) : mount(prefix, createBookApp()));
      await request(host.callback()).get(url).expect(308, '').expect('Location', location);
    });
  }

  check('/books', '', '/books/');
  check('/books?limit=2&offset=1', '', '/books/?limit=2&offset=1');
  check('/books?q=%2F%2Fevil.example', '', '/books/?q=%2F%2Fevil.example');
  check('/travel/books?limit=2', '/travel', '/travel/books/?limit=2');
  check('/a/b/books', '/a/b', '/a/b/books/');

  it('is redirected whatever is asked of it, since the slash comes before the method and the arguments', async () => {
    const library = serve();
    for (const method of ['head', 'post', 'delete', 'options'] as const) {
      await request(library)[method]('/books').expect(308).expect('Location', '/books/');
    }
    await request(library).get('/books?nonsense=1').expect(308).expect('Location', '/books/?nonsense=1');
  });

  it('is not taken for an item whose path it would fit', async () => {
    const found = () => ({ books: 'books/' });
    const view = createView<{ books: string }>({
      key: 'books',
      fields: { books: { column: 'books', schema: z.string() } },
    });
    const routes = [
      item({
        docs: { operationId: 'getAnything', summary: 'Read' },
        path: '/:id',
        title: 'Anything',
        view,
        find: found,
      }),
      index({ docs: { operationId: 'getBooks', summary: 'Read' }, path: '/books/', title: 'Books', entries: {} }),
    ];
    const handler = createResourceApp({ representations: createRepresentations(), routes }).callback();
    for (const method of ['get', 'head', 'post', 'options'] as const) {
      await request(handler)[method]('/books').expect(308).expect('Location', '/books/');
    }
    await request(handler).get('/others').expect(200, found());
  });

  for (const path of ['//books', '//evil.example/books', '/\\evil.example', '//evil.example']) {
    it(`is never on another host: ${path}`, async () => {
      const { headers } = await request(serve()).get(path).expect(404);
      assert.equal(headers['location'], undefined);
    });
  }
});

describe('methods', () => {
  const library = serve();

  for (const method of ['post', 'put', 'patch', 'delete'] as const) {
    for (const path of ['/', '/books/', '/books/1', '/books/9']) {
      it(`other than reading are 405 with Allow: ${method} ${path}`, async () => {
        const { body } = await request(library)[method](path).expect(405).expect('Allow', allow);
        assert.deepEqual(body, {
          code: 405,
          message: '405: Method Not Allowed',
          detail: `This resource takes ${allow}.`,
        });
      });
    }
  }

  it('of what is not there are 404, not 405', async () => {
    await request(library).post('/nowhere').expect(404, notFound);
    await request(library).delete('/books/1/').expect(404, notFound);
    await request(library).options('/nowhere').expect(404, notFound);
  });

  for (const path of ['/', '/books/', '/books/1']) {
    it(`are told to whoever asks with OPTIONS: ${path}`, async () => {
      const { text, headers } = await request(library).options(path).expect(204).expect('Allow', allow);
      assert.equal(text, '');
      assert.equal(headers['content-type'], undefined);
    });
  }

  for (const path of ['/', '/books/?limit=2', '/books/1', '/notes/1', '/books/9', '/nowhere']) {
    it(`HEAD has the status and the headers of GET, and no body: ${path}`, async () => {
      const get = await request(library).get(path);
      const head = await request(library).head(path);
      const lasting = ({ date: _date, ...headers }: Record<string, string>) => headers;
      assert.equal(head.status, get.status);
      assert.deepEqual(urlFree(lasting(head.headers)), urlFree(lasting(get.headers)));
      assert.equal(head.text, undefined);
    });
  }
});

/** Each request of supertest goes to a port of its own, which a URL in the body puts into its digest. */
function urlFree({ etag: _etag, ...headers }: Record<string, string>) {
  return headers;
}
