import assert from 'node:assert/strict';
import type { IncomingMessage, RequestListener } from 'node:http';
import Koa, { type Middleware } from 'koa';
import mount from 'koa-mount';
import request from 'supertest';
import { createAddresses, createRequestContext, createSafePath, publicBase, requestContext } from '#http';
import { createSignal } from '../support/waiting.ts';
import { bodyOf, withServer } from './raw-exchange.ts';

function appOf(...middleware: readonly Middleware[]): Koa {
  const app = new Koa();
  for (const one of middleware) app.use(one);
  return app;
}

const tellBase: Middleware = (ctx) => {
  ctx.body = { basePath: requestContext(ctx).basePath, publicBase: publicBase(ctx) };
};

const exchange = () => createRequestContext(createAddresses());

describe('createExchange', () => {
  const handler = appOf(exchange(), (ctx) => {
    ctx.body = requestContext(ctx).requestId;
  }).callback();

  function checkKept(id: string) {
    it(`passes the request id ${id.slice(0, 20)} through, in the response and to the app`, async () => {
      await request(handler).get('/').set('X-Request-Id', id).expect('X-Request-Id', id).expect(200, id);
    });
  }

  checkKept('0b6f1c52-7d7e-4a57-9d43-5f0f6c1d2a01');
  checkKept('a.b_c-1');
  checkKept('x'.repeat(128));

  function checkReplaced(id: string) {
    it(`makes a request id of its own in place of "${id.slice(0, 20)}"`, async () => {
      const { headers, text } = await request(handler).get('/').set('X-Request-Id', id).expect(200);
      assert.match(text, /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/);
      assert.equal(headers['x-request-id'], text);
    });
  }

  checkReplaced('');
  checkReplaced('x'.repeat(129));
  checkReplaced('a b');
  checkReplaced('a"b');
  checkReplaced('a, b');
  checkReplaced('<script>');

  it('makes another id for each request', async () => {
    const [one, other] = await Promise.all([request(handler).get('/'), request(handler).get('/')]);
    assert.notEqual(one.text, other.text);
  });

  it('lets nothing begin for clients that left while a host before it took its time', async () => {
    const waiting = 3;
    const [left, all, over] = [createSignal(), createSignal(), createSignal()];
    let asked = 0;
    let ended = 0;
    let begun = 0;
    const host = appOf(
      async (_ctx, next) => {
        asked += 1;
        if (asked === waiting) all.give();
        await left.given;
        await next();
        ended += 1;
        if (ended === waiting) over.give();
      },
      exchange(),
      () => {
        begun += 1;
      },
    );
    await withServer({ handler: host.callback() }, async ({ server, open }) => {
      server.once('connection', (socket) => socket.once('close', () => setImmediate(left.give)));
      const leaving = open();
      leaving.write('GET / HTTP/1.1\r\nHost: desk.test\r\n\r\n'.repeat(waiting));
      await all.given;
      leaving.destroy();
      await over.given;
    });
    assert.deepEqual([ended, begun], [waiting, 0]);
  });

  it('forbids the browser to guess media types', async () => {
    await request(handler).get('/').expect('X-Content-Type-Options', 'nosniff');
  });
});

describe('exchangeOf', () => {
  it('gives every layer of one request the same exchange', async () => {
    const handler = appOf(
      exchange(),
      async (ctx, next) => {
        await next();
        ctx.body = requestContext(ctx).user;
      },
      mount('/v1', (ctx) => {
        requestContext(ctx).user = 'demo';
      }),
    ).callback();
    await request(handler).get('/v1/x').expect(200, 'demo');
  });

  it('serves an app that runs without createRequestContext, and then trusts no proxy', async () => {
    await request(appOf(tellBase).callback())
      .get('/')
      .set('Host', 'desk.test')
      .set('X-Forwarded-Host', 'evil.example')
      .expect(200, { basePath: '', publicBase: 'http://desk.test' });
  });
});

describe('the root path', () => {
  it('stays where the exchange was opened while the base path follows the running app', async () => {
    const inner: Middleware = (ctx) => {
      const opened = requestContext(ctx);
      opened.basePath += '/v1';
      ctx.body = [opened.rootPath, opened.basePath];
    };
    const handler = appOf(mount('/travel', appOf(exchange(), inner))).callback();
    await request(handler).get('/travel/v1/x').expect(200, ['/travel', '/travel/v1']);
  });
});

describe('the base path', () => {
  async function baseOf(handler: RequestListener, target: string) {
    let basePath = '';
    await withServer({ handler }, async ({ send }) => {
      const response = await send(`GET ${target} HTTP/1.1\r\nHost: desk.test\r\nConnection: close\r\n\r\n`);
      assert.match(response, /^HTTP\/1\.1 200 /);
      ({ basePath } = JSON.parse(bodyOf(response)) as { basePath: string });
    });
    return basePath;
  }

  describe('when we are alone', () => {
    function check(target: string) {
      it(`is empty for ${target}`, async () => {
        assert.equal(await baseOf(appOf(exchange(), createSafePath(), tellBase).callback(), target), '');
      });
    }

    check('/');
    check('/v1/hotels/?a=/b');
    check('//evil.example/x');
    check('/%61/b');
    check('http://evil.example/x');
    check('http://[/x');
  });

  it('is what nested koa-mount took off', async () => {
    const handler = appOf(mount('/travel', appOf(mount('/eu', appOf(exchange(), tellBase))))).callback();
    assert.equal(await baseOf(handler, '/travel/eu/v1/x?y=1'), '/travel/eu');
    assert.equal(await baseOf(handler, '/travel/eu/'), '/travel/eu');
    assert.equal(await baseOf(handler, '/travel/eu'), '/travel/eu');
    assert.equal(await baseOf(handler, '/travel/eu//evil.example/x'), '/travel/eu');
    assert.equal(await baseOf(handler, 'http://desk.test/travel/eu/x'), '/travel/eu');
  });

  it('is what a connect-style host took off req.url, as it left it in req.originalUrl', async () => {
    const ours = appOf(exchange(), createSafePath(), tellBase).callback();
    const host: RequestListener = (req: IncomingMessage & { originalUrl?: string }, res) => {
      req.originalUrl = req.url ?? '';
      req.url = req.originalUrl.slice('/api'.length);
      if (!req.url.startsWith('/')) req.url = `/${req.url}`;
      ours(req, res);
    };
    assert.equal(await baseOf(host, '/api/v1/x?y=/v1/x'), '/api');
    assert.equal(await baseOf(host, '/api/'), '/api');
    assert.equal(await baseOf(host, '/api'), '/api');
    assert.equal(await baseOf(host, '/api?y'), '/api');
    assert.equal(await baseOf(host, '/api//evil.example/x'), '/api');
  });

  it('is found as well when the exchange opens late, behind a path that was mended', async () => {
    const handler = appOf(createSafePath(), tellBase).callback();
    assert.equal(await baseOf(handler, '//evil.example/x'), '');
    assert.equal(await baseOf(handler, '///evil.example/x'), '');
    assert.equal(await baseOf(handler, '/%61/x'), '');
    const mounted = appOf(mount('/v1', appOf(createSafePath(), tellBase))).callback();
    assert.equal(await baseOf(mounted, '/v1//evil.example/x'), '/v1');
    assert.equal(await baseOf(mounted, '/v1/%61/x'), '/v1');
  });

  it('begins with the prefix that a trusted proxy took off', async () => {
    const trusting = createRequestContext(createAddresses({ trustedProxies: ['127.0.0.0/8', '::1'] }));
    await request(appOf(mount('/v1', appOf(trusting, tellBase))).callback())
      .get('/v1/x')
      .set({ Host: 'desk.test', 'X-Forwarded-Prefix': '/travel', 'X-Forwarded-Proto': 'https' })
      .expect(200, { basePath: '/travel/v1', publicBase: 'https://desk.test/travel/v1' });
  });
});
