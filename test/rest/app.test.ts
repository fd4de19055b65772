/** An app of resources: its paths, its options and redirects, and API versions side by side, wherever they are mounted. */
import assert from 'node:assert/strict';
import Koa, { type Context, type Middleware } from 'koa';
import mount from 'koa-mount';
import request from 'supertest';
import { z } from 'zod';
import {
  builtInFormatters,
  createProblemResponses,
  createRepresentations,
  problem,
  requestContext,
  silentLogger,
} from '#http';
import { createView } from '#query';
import { createResourceApp, createVersions, index, item } from '#rest';
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

function appOf(...middleware: readonly Middleware[]): Koa {
  const app = new Koa({ env: 'test' }).on('error', () => {});
  for (const one of middleware) app.use(one);
  return app;
}

/** A version that responds with the request as it sees it. */
function mirror(name: string): Koa {
  return appOf((ctx) => {
    ctx.body = { version: name, path: ctx.path, query: ctx.querystring, base: requestContext(ctx).basePath };
  });
}

function serveVersions(versions: Readonly<Record<string, Koa>>, ...before: readonly Middleware[]) {
  return appOf(...before, createProblemResponses(), createVersions(versions), (ctx) => {
    ctx.body = 'the middleware after the versions';
  }).callback();
}

describe('createVersions', () => {
  const mirrors = serveVersions({ v1: mirror('v1'), v2: mirror('v2') });

  for (const [url, version, path, query] of [
    ['/v1/', 'v1', '/', ''],
    ['/v2/', 'v2', '/', ''],
    ['/v1/messages/1?a=b', 'v1', '/messages/1', 'a=b'],
    ['/v2/v1/x', 'v2', '/v1/x', ''],
    ['/v1/messages/%2F', 'v1', '/messages/%2F', ''],
  ] as const)
    it(`passes ${url} to ${version} as ${path}`, () =>
      request(mirrors)
        .get(url)
        .expect(200, { version, path, query, base: `/${version}` }));

  it('responds 404 to a path outside all versions, without a redirect or a call of the next middleware', async () => {
    const others = ['/', '/v', '/v3/', '/v10/', '/v1x/', '/V1/', '/%76%31/', '/x/v1/', '//v1/', '/v1;a=1/'];
    for (const url of [...others, '//evil.example', '//evil.example/v1', '//v1']) {
      const response = request(mirrors).get(url).expect(404, notFound).expect('Content-Type', 'application/json');
      assert.equal((await response).headers['location'], undefined);
    }
    await request(serveVersions({})).get('/').expect(404, notFound);
  });

  for (const [url, prefix, location] of [
    ['/v1', '', '/v1/'],
    ['/v1?a=b&c=%2F', '', '/v1/?a=b&c=%2F'],
    ['/travel/v1?a=b', '/travel', '/travel/v1/?a=b'],
    ['/travel/desk/v1', '/travel/desk', '/travel/desk/v1/'],
  ] as const)
    it(`adds the missing slash of a version's root, for every method: ${url} to ${location}`, async () => {
      const versions = createVersions({ v1: mirror('v1') });
      const outer = appOf(prefix === '' ? versions : mount(prefix, versions)).callback();
      await request(outer).get(url).expect(308).expect('Location', location);
      await request(outer).post(url).expect(308).expect('Location', location);
    });
});

describe('the base path of a version', () => {
  it('includes every mount around it', async () => {
    const outer = appOf(mount('/a', appOf(mount('/b', appOf(createVersions({ v1: mirror('v1') }))))));
    const { body } = await request(outer.callback()).get('/a/b/v1/x').expect(200);
    assert.deepEqual(body, { version: 'v1', path: '/x', query: '', base: '/a/b/v1' });
  });

  it('includes the versions around it', async () => {
    const inner = appOf(createVersions({ beta: mirror('beta') }));
    const outer = appOf(createVersions({ v1: inner })).callback();
    await request(outer).get('/v1/beta/x').expect(200, { version: 'beta', path: '/x', query: '', base: '/v1/beta' });
    await request(outer).get('/v1/beta?a=b').expect(308).expect('Location', '/v1/beta/?a=b');
  });

  it('is part of URLs and redirects, and a path that looks like another host is not redirected', async () => {
    const outer = appOf(mount('/travel', createVersions({ v1: createBookApp() }))).callback();
    const { body, headers } = await request(outer).get('/travel/v1/books/1').expect(200);
    assert.match(body.url, /^http:\/\/127\.0\.0\.1:\d+\/travel\/v1\/books\/1$/);
    assert.equal(headers['location'], undefined);
    await request(outer).get('/travel/v1/books?limit=2').expect(308).expect('Location', '/travel/v1/books/?limit=2');
    for (const path of ['/travel/v1//evil.example', '/travel/v1/\\evil.example', '/travel/v1//books'])
      assert.equal((await request(outer).get(path).expect(404)).headers['location'], undefined, path);
  });
});

describe('a version', () => {
  it('has a separate state, which the host, other versions and other requests do not see', async () => {
    const seen: unknown[] = [];
    const leak = (name: string) =>
      appOf((ctx) => {
        seen.push({ ...ctx.state });
        ctx.state[name] = true;
        ctx.body = name;
      });
    const host: Middleware = async (ctx, next) => {
      ctx.state['host'] = true;
      await next();
      seen.push({ ...ctx.state });
    };
    const both = serveVersions({ v1: leak('v1'), v2: leak('v2') }, host);
    await request(both).get('/v1/').expect(200);
    await request(both).get('/v2/').expect(200);
    assert.deepEqual(seen, [{}, { host: true }, {}, { host: true }]);
  });

  for (const [what, quiet] of Object.entries({
    'sends no response': appOf(() => {}),
    'calls next': appOf((_ctx, next) => next()),
    'has no middleware': appOf(),
  }))
    it(`responds 404 when it ${what}, without calling other middleware`, async () => {
      const others: string[] = [];
      const other = appOf((ctx) => void others.push(ctx.path));
      await request(serveVersions({ v1: quiet, v2: other }))
        .get('/v1/x')
        .expect(404, notFound);
      assert.deepEqual(others, []);
    });

  it('renders its own errors instead of throwing them to the host', async () => {
    const caught: unknown[] = [];
    const own = createBookApp({ logger: silentLogger });
    const host: Middleware = (_ctx, next) => Promise.resolve(next()).catch((error) => void caught.push(error));
    const outer = serveVersions({ v1: own, v2: mirror('v2') }, host);
    await request(outer).get('/v1/broken').expect(500, { code: 500, message: '500: Internal Server Error' });
    await request(outer).get('/v1/nowhere').expect(404, notFound);
    await request(outer).get('/v2/broken').expect(200);
    assert.deepEqual(caught, []);
  });

  it('restores the path and base path of the host when it throws', async () => {
    const broken = appOf(() => {
      throw new Error('no');
    });
    const recorded: unknown[] = [];
    const host = async (ctx: Context, next: () => Promise<unknown>) => {
      const record = () => recorded.push([ctx.url, ctx.path, requestContext(ctx).basePath]);
      record();
      try {
        await next();
      } catch {
        record();
        ctx.body = 'the host';
      }
    };
    const outer = appOf(host, createVersions({ v1: broken }));
    await request(outer.callback()).get('/v1/x?a=b').expect(200, 'the host');
    assert.deepEqual(recorded[1], recorded[0]);
    assert.deepEqual(recorded[0], ['/v1/x?a=b', '/v1/x', '']);
  });
});
