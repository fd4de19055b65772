import assert from 'node:assert/strict';
import Koa, { type Context, type Middleware } from 'koa';
import Router from 'koa-router';
import request from 'supertest';
import { createProblemResponses, isolate } from '#http';

/** An outer app that isolates `inner` and would answer whatever falls through. */
function around(inner: Koa | Middleware, before: Middleware = (_ctx, next) => next()) {
  const app = new Koa();
  const run = isolate(inner);
  app.use(before);
  app.use(createProblemResponses());
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
  it('answers what the inner app answers, be it an app or a middleware', async () => {
    const answer: Middleware = (ctx) => {
      ctx.body = 'the inner app';
    };
    const app = new Koa();
    app.use(answer);
    await request(around(app)).get('/').expect(200, 'the inner app');
    await request(around(answer)).get('/').expect(200, 'the inner app');
  });

  it('answers 404 with the error body for what the inner app leaves unanswered, and nothing falls through', async () => {
    await request(around(new Koa())).get('/').expect(404, { code: 404, message: '404: Not Found' });
    await request(around((_ctx, next) => next()))
      .get('/')
      .expect(404, { code: 404, message: '404: Not Found' });
  });

  it('keeps a 404 that the inner app words itself, and an empty answer that it means', async () => {
    const inner: Middleware = (ctx) => {
      if (ctx.path === '/empty') ctx.status = 204;
      else {
        ctx.status = 404;
        ctx.body = 'mine';
      }
    };
    await request(around(inner)).get('/').expect(404, 'mine');
    await request(around(inner)).get('/empty').expect(204);
  });

  it('keeps the state of the inner app and of the outer apart, also when the inner one throws', async () => {
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

  it("hides the parameters of a host's koa-router, and puts them back", async () => {
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
});
