/** An app of resources: the paths and methods that it supports, and its responses to all others. */
import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
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

const quiet = { info() {}, warn() {}, error() {} };

function serve(options?: Parameters<typeof createBookApp>[0]) {
  return createBookApp(options).callback();
}

const library = serve();

describe('createResourceApp', () => {
  it('responds to GET on each of its paths', async () => {
    for (const path of ['/', '/books/', '/books/1', '/notes/1'])
      await request(library).get(path).expect(200).expect('Content-Type', 'application/json').expect('Vary', 'Accept');
  });

  it('responds 404 with the error body for other paths, including items with a trailing slash', async () => {
    const unknown = ['/nowhere', '/nowhere/', '/books/9', '/books/1/2', '/Books/', '/BOOKS/1', '/books//', '/notes'];
    const slashed = ['/books/1/', '/notes/1/', '/books/9/', '/broken/'];
    const elsewhere = ['//books', '//evil.example/books', '/\\evil.example', '//evil.example'];
    for (const path of [...unknown, ...slashed, ...elsewhere, '/books/%zz']) {
      const { headers } = await request(library).get(path).expect(404, notFound);
      assert.deepEqual([headers['content-type'], headers['location']], ['application/json', undefined], path);
    }
  });

  it('decodes the percent-encoding of an id', async () => {
    assert.equal((await request(library).get('/books/%31').expect(200)).body.id, 1);
  });

  it('renders errors in the representation that Accept prefers', async () => {
    const get = (accept: string) => request(library).get('/nowhere').set('Accept', accept).expect(404);
    assert.equal((await get('application/yaml')).text, 'code: 404\nmessage: "404: Not Found"\n');
    assert.match((await get('text/html')).text, /<h1>404: Not Found<\/h1>/);
    const { body, headers } = await get('application/problem+json');
    assert.equal(headers['content-type'], 'application/problem+json');
    assert.deepEqual(body, { type: 'about:blank', title: 'Not Found', status: 404, ...notFound });
  });

  it('responds 406 and lists its configured representations', async () => {
    const check = async (handler: RequestListener, accept: string, types: string) => {
      const { body } = await request(handler).get('/books/1').set('Accept', accept).expect(406);
      assert.equal(body.detail, `This resource is available as ${types}.`);
    };
    await check(library, 'image/png', 'application/json, application/yaml, text/html');
    const plain = serve({ representations: createRepresentations(builtInFormatters.slice(0, 1)) });
    await request(plain).get('/books/1').expect(200);
    await check(plain, 'text/html', 'application/json');
  });

  it('logs unexpected errors and hides them from the client', async () => {
    const errors: unknown[] = [];
    const logger = { ...quiet, error: (fields: object) => void errors.push(fields) };
    const { text } = await request(serve({ logger })).get('/broken').expect(500);
    assert.deepEqual(JSON.parse(text), { code: 500, message: '500: Internal Server Error' });
    assert.match(JSON.stringify(errors.map((one) => String(Object(one).err))), /the shelf fell over/);
  });

  it('renders errors of other modules as the problems that toProblem returns', async () => {
    const toProblem = (thrown: unknown) =>
      thrown instanceof Error && thrown.message.includes('shelf')
        ? problem('storage-unavailable', { headers: { 'Retry-After': '1' } })
        : undefined;
    const handler = serve({ toProblem, logger: quiet });
    await request(handler).get('/broken').expect(503).expect('Retry-After', '1');
    await request(handler).get('/nowhere').expect(404, notFound);
  });
});

describe('a collection without its slash', () => {
  for (const [url, prefix, location] of [
    ['/books', '', '/books/'],
    ['/books?limit=2&offset=1', '', '/books/?limit=2&offset=1'],
    ['/books?q=%2F%2Fevil.example', '', '/books/?q=%2F%2Fevil.example'],
    ['/books?nonsense=1', '', '/books/?nonsense=1'],
    ['/travel/books?limit=2', '/travel', '/travel/books/?limit=2'],
    ['/a/b/books', '/a/b', '/a/b/books/'],
  ] as const)
    it(`is redirected from ${url} to ${location}`, async () => {
      const app = createBookApp();
      const host = new Koa().use(prefix === '' ? mount(app) : mount(prefix, app));
      await request(host.callback()).get(url).expect(308, '').expect('Location', location);
    });

  it('is redirected for every method, even when its path matches that of an item', async () => {
    const found = { books: 'books/' };
    const column = { column: 'books' as const, schema: z.string() };
    const view = createView<{ books: string }>({ key: 'books', fields: { books: column } });
    const docs = { operationId: 'getAnything', summary: 'Read' };
    const routes = [
      item({ docs, path: '/:id', title: 'Anything', view, find: () => found }),
      index({ docs, path: '/books/', title: 'Books', entries: {} }),
    ];
    const handler = createResourceApp({ representations: createRepresentations(), routes }).callback();
    for (const app of [library, handler])
      for (const method of ['get', 'head', 'post', 'delete', 'options'] as const)
        await request(app)[method]('/books').expect(308).expect('Location', '/books/');
    await request(handler).get('/others').expect(200, found);
  });
});

describe('methods', () => {
  for (const path of ['/', '/books/', '/books/1', '/books/9'])
    it(`that are not supported get 405, and OPTIONS lists those that are: ${path}`, async () => {
      const detail = `This resource supports ${allow}.`;
      const body = { code: 405, message: '405: Method Not Allowed', detail };
      for (const method of ['post', 'put', 'patch', 'delete'] as const)
        await request(library)[method](path).expect(405, body).expect('Allow', allow);
      const { text, headers } = await request(library).options(path).expect(204).expect('Allow', allow);
      assert.deepEqual([text, headers['content-type']], ['', undefined]);
    });

  it('get 404, not 405, on a path that does not exist', async () => {
    await request(library).post('/nowhere').expect(404, notFound);
    await request(library).delete('/books/1/').expect(404, notFound);
    await request(library).options('/nowhere').expect(404, notFound);
  });

  for (const path of ['/', '/books/?limit=2', '/books/1', '/notes/1', '/books/9', '/nowhere'])
    it(`include HEAD, with the status and headers of GET and no body: ${path}`, async () => {
      const [get, head] = [await request(library).get(path), await request(library).head(path)];
      assert.deepEqual([head.status, head.text], [get.status, undefined]);
      assert.deepEqual(comparable(head.headers), comparable(get.headers));
    });
});

/** Drops the ETag, which depends on URLs in the body: supertest uses a different port for each request. */
function comparable({ date: _date, etag: _etag, ...headers }: Record<string, string>) {
  return headers;
}
