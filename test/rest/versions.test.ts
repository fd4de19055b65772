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

/** A version that tells what it sees. */
function mirror(name: string): Koa {
  return appOf((ctx) => {
    ctx.body = { version: name, path: ctx.path, query: ctx.querystring, base: requestContext(ctx).basePath };
  });
}

function serve(versions: Readonly<Record<string, Koa>>, ...before: readonly Middleware[]) {
  return appOf(...before, createProblemResponses(), createVersions(versions), (ctx) => {
    ctx.body = 'whatever comes after the versions';
  }).callback();
}

describe('createVersions', () => {
  const mirrors = serve({ v1: mirror('v1'), v2: mirror('v2') });

  function check(url: string, seen: object) {
    it(`hands ${url} on as ${JSON.stringify(seen)}`, async () => {
      await request(mirrors).get(url).expect(200, seen);
    });
  }

  check('/v1/', { version: 'v1', path: '/', query: '', base: '/v1' });
  check('/v2/', { version: 'v2', path: '/', query: '', base: '/v2' });
  check('/v1/messages/1?a=b', { version: 'v1', path: '/messages/1', query: 'a=b', base: '/v1' });
  check('/v2/v1/x', { version: 'v2', path: '/v1/x', query: '', base: '/v2' });
  check('/v1/messages/%2F', { version: 'v1', path: '/messages/%2F', query: '', base: '/v1' });

  for (const url of ['/', '/v', '/v3/', '/v10/', '/v1x/', '/V1/', '/%76%31/', '/x/v1/', '//v1/', '/v1;a=1/']) {
    it(`answers 404 to ${url}, which is no version, and hands it to nobody else`, async () => {
      await request(mirrors).get(url).expect(404, notFound).expect('Content-Type', 'application/json');
    });
  }

  it('knows no version but those that it is given', async () => {
    await request(serve({ v2: mirror('v2') }))
      .get('/v1/')
      .expect(404, notFound);
    await request(serve({})).get('/').expect(404, notFound);
  });

  it('gives the same path to each version, which answers it its own way', async () => {
    const say = (text: string) =>
      appOf((ctx) => {
        ctx.body = text;
      });
    const both = serve({ v1: say('one'), v2: say('two') });
    await request(both).get('/v1/messages/1').expect(200, 'one');
    await request(both).get('/v2/messages/1').expect(200, 'two');
  });
});

describe('the root of a version without its slash', () => {
  const mirrors = createVersions({ v1: mirror('v1') });

  function check(url: string, prefix: string, location: string) {
    it(`is redirected from ${url} to ${location}`, async () => {
      const outer = appOf(prefix === '' ? mirrors : mount(prefix, mirrors)).callback();
      await request(outer).get(url).expect(308).expect('Location', location);
    });
  }

  check('/v1', '', '/v1/');
  check('/v1?a=b&c=%2F', '', '/v1/?a=b&c=%2F');
  check('/travel/v1?a=b', '/travel', '/travel/v1/?a=b');
  check('/travel/desk/v1', '/travel/desk', '/travel/desk/v1/');

  it('keeps its method on the way', async () => {
    await request(appOf(mirrors).callback()).post('/v1').expect(308).expect('Location', '/v1/');
  });
});

describe('the base path of a version', () => {
  it('holds every mount around it', async () => {
    const outer = appOf(mount('/a', appOf(mount('/b', appOf(createVersions({ v1: mirror('v1') }))))));
    const { body } = await request(outer.callback()).get('/a/b/v1/x').expect(200);
    assert.deepEqual(body, { version: 'v1', path: '/x', query: '', base: '/a/b/v1' });
  });

  it('holds the versions around it, when versions stand in a version', async () => {
    const inner = appOf(createVersions({ beta: mirror('beta') }));
    const outer = appOf(createVersions({ v1: inner })).callback();
    await request(outer).get('/v1/beta/x').expect(200, { version: 'beta', path: '/x', query: '', base: '/v1/beta' });
    await request(outer).get('/v1/beta?a=b').expect(308).expect('Location', '/v1/beta/?a=b');
  });

  it('is in the URLs and redirects of its resources', async () => {
    const outer = appOf(mount('/travel', createVersions({ v1: createBookApp() }))).callback();
    const { body, headers } = await request(outer).get('/travel/v1/books/1').expect(200);
    assert.match(body.url, /^http:\/\/127\.0\.0\.1:\d+\/travel\/v1\/books\/1$/);
    assert.equal(headers['location'], undefined);
    await request(outer).get('/travel/v1/books?limit=2').expect(308).expect('Location', '/travel/v1/books/?limit=2');
  });
});

describe('a version', () => {
  it('has a state of its own: the host, the versions and two requests see nothing of each other', async () => {
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

  for (const [what, quiet] of [
    ['answers nothing', appOf(() => {})],
    ['calls next', appOf((_ctx, next) => next())],
    ['has no middleware', appOf()],
  ] as const) {
    it(`that ${what} is a 404, and neither another version nor what comes after sees the request`, async () => {
      const others: string[] = [];
      const other = appOf((ctx) => void others.push(ctx.path));
      await request(serve({ v1: quiet, v2: other }))
        .get('/v1/x')
        .expect(404, notFound);
      assert.deepEqual(others, []);
    });
  }

  it('renders its own errors, of which the host hears nothing', async () => {
    const heard: unknown[] = [];
    const own = createBookApp({ logger: { info() {}, warn() {}, error() {} } });
    const host: Middleware = (_ctx, next) => Promise.resolve(next()).catch((error) => void heard.push(error));
    const outer = serve({ v1: own, v2: mirror('v2') }, host);
    await request(outer).get('/v1/broken').expect(500, { code: 500, message: '500: Internal Server Error' });
    await request(outer).get('/v1/nowhere').expect(404, notFound);
    await request(outer).get('/v2/broken').expect(200);
    assert.deepEqual(heard, []);
  });

  it('that throws leaves path and base path to the host as they were', async () => {
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

describe('a path that begins like an address of another host', () => {
  const outer = serve({ v1: createBookApp() });
  const paths = [
    '//evil.example',
    '//evil.example/v1',
    '/v1//evil.example',
    '/v1/\\evil.example',
    '//v1',
    '/v1//books',
  ];

  for (const path of paths) {
    it(`is not redirected there: ${path}`, async () => {
      const { headers } = await request(outer).get(path).expect(404);
      assert.equal(headers['location'], undefined);
    });
  }
});
