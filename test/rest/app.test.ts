/** An app of resources: its paths, its options, and redirects to the slash of a collection. */
import assert from 'node:assert/strict';
import Koa from 'koa';
import mount from 'koa-mount';
import request from 'supertest';
import { z } from 'zod';
import { builtInFormatters, createRepresentations, problem, silentLogger } from '#http';
import { createView } from '#query';
import { createResourceApp, index, item } from '#rest';
import { createBookApp } from './book-app.ts';

const notFound = { code: 404, message: '404: Not Found' };

function serve(options?: Parameters<typeof createBookApp>[0]) {
  return createBookApp(options).callback();
}

const library = serve();

describe('createResourceApp', () => {
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

  it('responds 406 and lists its configured representations', async () => {
    const plain = serve({ representations: createRepresentations(builtInFormatters.slice(0, 1)) });
    await request(plain).get('/books/1').expect(200);
    const { body } = await request(plain).get('/books/1').set('Accept', 'text/html').expect(406);
    assert.equal(body.detail, 'This resource is available as application/json.');
  });

  it('logs unexpected errors and hides them from the client', async () => {
    const errors: unknown[] = [];
    const logger = { info() {}, warn() {}, error: (fields: object) => void errors.push(fields) };
    const { text } = await request(serve({ logger })).get('/broken').expect(500);
    assert.deepEqual(JSON.parse(text), { code: 500, message: '500: Internal Server Error' });
    assert.match(JSON.stringify(errors.map((one) => String(Object(one).err))), /the shelf fell over/);
  });

  it('renders errors of other modules as the problems that toProblem returns', async () => {
    const toProblem = (thrown: unknown) =>
      thrown instanceof Error && thrown.message.includes('shelf')
        ? problem('storage-unavailable', { headers: { 'Retry-After': '1' } })
        : undefined;
    const handler = serve({ toProblem, logger: silentLogger });
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
