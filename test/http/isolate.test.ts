/** An isolated inner app: its responses and errors, its state, and bodies that it does not read to the end. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import Koa, { type Context, type Middleware } from 'koa';
import Router from 'koa-router';
import request from 'supertest';
import { silentLogger } from '#foundation';
import { createProblemResponses, isolate, problem } from '#http';
import { testServers } from '../support/serve.ts';
import { speak } from '../support/wire/peer.ts';
import { rawRequest } from '../support/wire/raw-client.ts';

/** An outer app that isolates `inner`, with a later middleware that would respond if a request fell through. */
function around(inner: Koa | Middleware, before: Middleware = (_ctx, next) => next()) {
  const app = new Koa();
  const run = isolate(inner);
  app.use(before);
  app.use(createProblemResponses({ logger: silentLogger }));
  app.use(async (ctx, next) => {
    await run(ctx);
    if (ctx.path === '/on') await next();
  });
  app.use((ctx) => {
    ctx.body = 'the outer app';
  });
  return app.callback();
}

describe('isolate', () => {
  const servers = testServers();

  it('responds with a 404 error body, without falling through, when the inner app does not respond', async () => {
    const passing: Middleware = (_ctx, next) => next();
    for (const inner of [passing, new Koa()])
      await request(around(inner)).get('/').expect(404, { code: 404, message: '404: Not Found' });
  });

  it('keeps a 404 with a body and an empty response from the inner app', async () => {
    const inner: Middleware = (ctx) => {
      ctx.status = ctx.path === '/empty' ? 204 : 404;
      if (ctx.status === 404) ctx.body = 'mine';
    };
    await request(around(inner)).get('/').expect(404, 'mine');
    await request(around(inner)).get('/empty').expect(204);
  });

  const prepared: Readonly<Record<string, () => object>> = {
    'a body': () => ({ body: 'the host' }),
    'a body of JSON': () => ({ body: { from: 'the host' } }),
    'a stream': () => ({ body: Readable.from(['the host']) }),
    'a status': () => ({ status: 503 }),
    'a status of 404': () => ({ status: 404 }),
    'a type': () => ({ type: 'html' }),
    'ctx.respond': () => ({ respond: false }),
  };
  for (const [what, prepare] of Object.entries(prepared))
    it(`replaces ${what} prepared by the host, whether the inner app responds or not`, async () => {
      const before: Middleware = (ctx, next) => {
        Object.assign(ctx, prepare());
        return next();
      };
      const inner: Middleware = (ctx) => {
        if (ctx.path === '/there') ctx.body = 'mine';
      };
      const app = around(inner, before);
      await request(app).get('/there').expect(200, 'mine');
      await request(app).get('/elsewhere').expect(404, { code: 404, message: '404: Not Found' });
    });

  const circular: Record<string, unknown> = {};
  circular['self'] = circular;
  const unserialisable: Readonly<Record<string, unknown>> = {
    'a BigInt': { count: 1n },
    'a circular object': circular,
    'a toJSON that throws': {
      toJSON() {
        throw new Error('no');
      },
    },
    'a function': () => {},
  };
  for (const [what, body] of Object.entries(unserialisable))
    it(`responds with a 500 error body to ${what}, which JSON cannot represent`, async () => {
      const inner: Middleware = (ctx) => {
        ctx.body = body;
      };
      for (const method of ['get', 'head'] as const)
        await request(around(inner))
          [method]('/')
          .expect(500, method === 'get' ? { code: 500, message: '500: Internal Server Error' } : {})
          .expect('Content-Type', 'application/json');
    });

  const written: Readonly<Record<string, readonly [() => unknown, type: string, text: string]>> = {
    JSON: [() => ({ a: 1 }), 'application/json; charset=utf-8', '{"a":1}'],
    'a number': [() => 5, 'application/json; charset=utf-8', '5'],
    'a stream': [() => Readable.from(['x']), 'application/octet-stream', 'x'],
    'a web stream': [() => new Blob(['x']).stream(), 'application/octet-stream', 'x'],
    'a blob': [() => new Blob(['x'], { type: 'a/b' }), 'a/b', 'x'],
    'a fetch response': [() => new Response('x', { headers: { 'Content-Type': 'a/b' } }), 'a/b', 'x'],
  };
  for (const [what, [make, type, text]] of Object.entries(written))
    it(`sends ${what} from the inner app`, async () => {
      const inner: Middleware = (ctx) => {
        ctx.body = make();
      };
      const { headers, body } = await request(around(inner))
        .get('/')
        .buffer(true)
        .parse((response, done) => void response.on('data', (part) => done(null, String(part))))
        .expect(200);
      assert.deepEqual([headers['content-type'], body], [type, text]);
    });

  it('separates the state of the inner and the outer app, even if the inner one throws', async () => {
    const seen: unknown[] = [];
    const inner: Middleware = (ctx) => {
      seen.push({ ...ctx.state });
      ctx.state['inner'] = true;
      if (ctx.path === '/broken') throw Object.assign(new Error('no'), { status: 400, expose: true });
      ctx.body = 'x';
    };
    const watch: Middleware = async (ctx, next) => {
      ctx.state['outer'] = true;
      await next();
      seen.push({ ...ctx.state });
    };
    await request(around(inner, watch)).get('/').expect(200);
    await request(around(inner, watch)).get('/broken').expect(400);
    assert.deepEqual(seen, [{}, { outer: true }, {}, { outer: true }]);
  });

  it("hides the parameters of a host's koa-router and restores them", async () => {
    const seen: unknown[] = [];
    const run = isolate((ctx) => {
      const inner = new Router().get('/:id', (routed) => {
        routed.body = routed.params;
      });
      return (inner.routes() as unknown as Middleware)(ctx, async () => {});
    });
    const host = new Router().get('/:tenant', async (ctx) => {
      await run(ctx as unknown as Context);
      seen.push(
        ctx.params,
        ctx.matched?.map(({ path }) => path),
      );
    });
    const app = new Koa().use(host.routes() as unknown as Middleware);
    await request(app.callback()).get('/one').expect(200, { id: 'one' });
    assert.deepEqual(seen, [{ tenant: 'one' }, ['/:tenant']]);
  });

  for (const [how, fails] of [
    ['responds', false],
    ['throws', true],
  ] as const)
    it(`discards the rest of a body that the inner app stops reading before it ${how}`, async () => {
      const { port } = await servers.http(
        around(async (ctx) => {
          if (ctx.method === 'POST') await once(ctx.req, 'data');
          ctx.req.pause();
          if (fails) throw problem('bad-body');
          ctx.body = 'early';
        }),
      );
      const client = speak(port, `${post}${'a'.repeat(500_000)}`);
      await client.until('HTTP/1.1 ');
      client.socket.write('a'.repeat(500_000) + rawRequest('GET /on'));
      assert.equal((await client.closed).split('HTTP/1.1 ').length, 3);
    });
});

const post = 'POST / HTTP/1.1\r\nHost: front.example\r\nContent-Length: 1000000\r\n\r\n';
