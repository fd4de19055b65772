/** Versions side by side: each alone under its prefix, wherever all of them are mounted. */
import assert from 'node:assert/strict';
import Koa, { type Context, type Middleware } from 'koa';
import mount from 'koa-mount';
import request from 'supertest';
import { createProblemResponses, requestContext } from '#http';
import { createVersions } from '#rest';
import { createBookApp } from './book-app.ts';

const notFound = { code: 404, message: '404: Not Found' };

function appOf(...middleware: readonly Middleware[]): Koa {
  const app = new Koa({ env: 'test' }).on('error', () => {});
  for (const one of middleware) app.use(one);
  return app;
}

/** A version that answers with what it sees. */
function mirror(name: string): Koa {
  return appOf((ctx) => {
    ctx.body = { version: name, path: ctx.path, query: ctx.querystring, base: requestContext(ctx).basePath };
  });
}

function serve(versions: Readonly<Record<string, Koa>>, ...before: readonly Middleware[]) {
  return appOf(...before, createProblemResponses(), createVersions(versions), (ctx) => {
    ctx.body = 'the middleware after the versions';
  }).callback();
}

describe('createVersions', () => {
  const mirrors = serve({ v1: mirror('v1'), v2: mirror('v2') });

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

  it('answers 404 to a path of no version, without a redirect, and passes it to no other middleware', async () => {
    const others = ['/', '/v', '/v3/', '/v10/', '/v1x/', '/V1/', '/%76%31/', '/x/v1/', '//v1/', '/v1;a=1/'];
    for (const url of [...others, '//evil.example', '//evil.example/v1', '//v1']) {
      const answer = request(mirrors).get(url).expect(404, notFound).expect('Content-Type', 'application/json');
      assert.equal((await answer).headers['location'], undefined);
    }
    await request(serve({})).get('/').expect(404, notFound);
  });

  for (const [url, prefix, location] of [
    ['/v1', '', '/v1/'],
    ['/v1?a=b&c=%2F', '', '/v1/?a=b&c=%2F'],
    ['/travel/v1?a=b', '/travel', '/travel/v1/?a=b'],
    ['/travel/desk/v1', '/travel/desk', '/travel/desk/v1/'],
  ] as const)
    it(`redirects the root of a version without its slash from ${url} to ${location}, for every method`, async () => {
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

  it('is in the URLs and redirects of its resources, and not of paths that begin like another host', async () => {
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
  it('has its own state, which the host, other versions and other requests do not see', async () => {
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
    const both = serve({ v1: leak('v1'), v2: leak('v2') }, host);
    await request(both).get('/v1/').expect(200);
    await request(both).get('/v2/').expect(200);
    assert.deepEqual(seen, [{}, { host: true }, {}, { host: true }]);
  });

  for (const [what, quiet] of Object.entries({
    'answers nothing': appOf(() => {}),
    'calls next': appOf((_ctx, next) => next()),
    'has no middleware': appOf(),
  }))
    it(`that ${what} is a 404, and no other middleware sees the request`, async () => {
      const others: string[] = [];
      const other = appOf((ctx) => void others.push(ctx.path));
      await request(serve({ v1: quiet, v2: other }))
        .get('/v1/x')
        .expect(404, notFound);
      assert.deepEqual(others, []);
    });

  it('renders its own errors, and throws none to the host', async () => {
    const caught: unknown[] = [];
    const own = createBookApp({ logger: { info() {}, warn() {}, error() {} } });
    const host: Middleware = (_ctx, next) => Promise.resolve(next()).catch((error) => void caught.push(error));
    const outer = serve({ v1: own, v2: mirror('v2') }, host);
    await request(outer).get('/v1/broken').expect(500, { code: 500, message: '500: Internal Server Error' });
    await request(outer).get('/v1/nowhere').expect(404, notFound);
    await request(outer).get('/v2/broken').expect(200);
    assert.deepEqual(caught, []);
  });

  it('that throws leaves the path and the base path of the host as they were', async () => {
    const broken = appOf(() => {
      throw new Error('no');
    });
    const places: unknown[] = [];
    const host = async (ctx: Context, next: () => Promise<unknown>) => {
      const place = () => places.push([ctx.url, ctx.path, requestContext(ctx).basePath]);
      place();
      try {
        await next();
      } catch {
        place();
        ctx.body = 'the host';
      }
    };
    const outer = appOf(host, createVersions({ v1: broken }));
    await request(outer.callback()).get('/v1/x?a=b').expect(200, 'the host');
    assert.deepEqual(places[1], places[0]);
    assert.deepEqual(places[0], ['/v1/x?a=b', '/v1/x', '']);
  });
});
