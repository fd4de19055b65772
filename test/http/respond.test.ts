/** Standard responses: representations with preconditions, and redirects. */
import assert from 'node:assert/strict';
import Koa, { type Context, type Middleware } from 'koa';
import request from 'supertest';
import { createRepresentations, redirectTo, represent } from '#http';

const representations = createRepresentations();
const hotel = { id: 'h1', name: 'Zum <Bären>' };

interface Setup {
  readonly version?: number | undefined;
  readonly value?: unknown;
  readonly before?: Middleware;
}

function handlerOf({ version, value = hotel, before = (_ctx, next) => next() }: Setup = {}) {
  const app = new Koa().use(before).use((ctx: Context) => {
    represent(ctx, representations.choose(ctx.req.headers.accept), value, { title: 'Hotel', version });
  });
  app.silent = true;
  return app.callback();
}

describe('represent', () => {
  for (const version of [3, undefined])
    it(`responds with 304 when If-None-Match contains the tag of ${version ?? 'a digest'}`, async () => {
      const handler = handlerOf({ version });
      const { etag } = (await request(handler).get('/')).headers;
      for (const ifNoneMatch of [`${etag}`, `W/${etag}`, `"other", ${etag}`, '*']) {
        const known = request(handler).get('/').set('If-None-Match', ifNoneMatch);
        await request(handler).head('/').set('If-None-Match', ifNoneMatch).expect(304);
        const { headers, text } = await known.expect(304);
        assert.deepEqual([text, headers['etag'], headers['vary']], ['', etag, 'Accept']);
        assert.deepEqual([headers['content-type'], headers['content-length']], [undefined, undefined]);
        assert.equal(headers['cache-control'], 'private, no-cache');
      }
    });

  for (const version of [3, undefined])
    it(`responds with 412 when If-Match lacks the tag of ${version ?? 'a digest'}, whatever If-None-Match says`, async () => {
      const handler = handlerOf({ version });
      const { etag } = (await request(handler).get('/')).headers;
      for (const [ifMatch, status] of [
        [`${etag}`, 200],
        [`"other", ${etag}`, 200],
        ['*', 200],
        ['"other"', 412],
        [`W/${etag}`, 412],
        ['3', 412],
      ] as const)
        for (const method of ['get', 'head'] as const) {
          await request(handler)[method]('/').set('If-Match', ifMatch).expect(status);
          const both = request(handler)[method]('/').set({ 'If-Match': ifMatch, 'If-None-Match': '*' });
          await both.expect(status === 412 ? 412 : 304);
        }
      await request(handler).patch('/').set({ 'If-Match': '"other"', 'If-None-Match': '*' }).expect(200);
    });

  it('sends a body that a new release changes, although the version of the item is the same', async () => {
    const { etag } = (await request(handlerOf({ version: 3 })).get('/')).headers;
    assert.match(String(etag), /^"3-[\da-z]{1,7}"$/);
    const released = { ...hotel, stars: 4 };
    const get = request(handlerOf({ version: 3, value: released })).get('/');
    await get.set('If-None-Match', String(etag)).expect(200, released);
  });

  it('keeps an existing Cache-Control and Vary', async () => {
    const before: Middleware = (ctx, next) => {
      ctx.set({ Vary: 'Origin', 'Cache-Control': 'no-store' });
      return next();
    };
    const get = request(handlerOf({ before })).get('/');
    await get.expect('Vary', 'Origin, Accept').expect('Cache-Control', 'no-store').expect(200);
  });
});

describe('redirectTo', () => {
  it('responds with 308 without a body and never redirects to another host', async () => {
    for (const [location, expected] of [
      ['/travel/v1/messages/?a=1&a=%2F', '/travel/v1/messages/?a=1&a=%2F'],
      ['//evil.example/', '/evil.example/'],
      ['/\\evil.example/', '/evil.example/'],
      ['///\\/evil.example/', '/evil.example/'],
    ] as const) {
      const app = new Koa().use((ctx) => redirectTo(ctx, location));
      const { headers, text } = await request(app.callback()).post('/').redirects(0).expect(308);
      assert.deepEqual([headers['location'], headers['content-type'], text], [expected, undefined, '']);
    }
  });
});
