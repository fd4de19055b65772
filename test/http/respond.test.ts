import assert from 'node:assert/strict';
import Koa, { type Context, type Middleware } from 'koa';
import request from 'supertest';
import {
  createProblemResponses,
  createRepresentations,
  isRead,
  redirectTo,
  renderResponse,
  represent,
  type StoredResponse,
  sendStoredResponse,
} from '#http';

const representations = createRepresentations();
const hotel = { id: 'h1', name: 'Zum <Bären>' };

interface Setup {
  readonly version?: string | undefined;
  readonly value?: unknown;
  readonly before?: Middleware;
}

function handlerOf({ version, value = hotel, before = (_ctx, next) => next() }: Setup = {}) {
  const app = new Koa().use(before).use((ctx: Context) => {
    represent(ctx, representations.choose(ctx.req.headers.accept), value, { title: 'Hotel', version });
  });
  return app.callback();
}

const versioned = handlerOf({ version: 'v3' });

describe('represent', () => {
  it('sends JSON with a tag of the version and the representation, and varies by Accept', async () => {
    const { headers, text } = await request(versioned).get('/').expect(200);
    assert.equal(text, '{"id":"h1","name":"Zum <Bären>"}');
    const { etag, vary, 'content-type': type, 'content-length': length, 'cache-control': cache } = headers;
    assert.deepEqual([type, length], ['application/json', String(Buffer.byteLength(text))]);
    assert.deepEqual([etag, vary, cache], ['"v3-json"', 'Accept', 'private, no-cache']);
  });

  it('sends YAML and HTML by Accept, each with its tag', async () => {
    const get = (accept: string) => request(versioned).get('/').set('Accept', accept);
    await get('application/yaml')
      .expect('ETag', '"v3-yaml"')
      .expect(200, /^id: h1\n/);
    await get('text/html')
      .expect('ETag', '"v3-html"')
      .expect('Content-Type', 'text/html; charset=utf-8')
      .expect('Content-Security-Policy', /default-src 'none'/)
      .expect(200, /Zum &#60;Bären&#62;/);
  });

  it('tags a value without a version by its bytes', async () => {
    const tag = async (value: unknown) => (await request(handlerOf({ value })).get('/')).headers['etag'];
    assert.equal(await tag(hotel), await tag({ ...hotel }));
    assert.notEqual(await tag(hotel), await tag({ ...hotel, name: 'Krone' }));
  });

  for (const version of ['v3', undefined])
    it(`answers 304 when If-None-Match contains the tag of ${version ?? 'a digest'}`, async () => {
      const handler = handlerOf({ version });
      const { etag } = (await request(handler).get('/')).headers;
      for (const ifNoneMatch of [`${etag}`, `W/${etag}`, `"other", ${etag}`, '*']) {
        const known = request(handler).get('/').set('If-None-Match', ifNoneMatch);
        const { headers, text } = await known.expect(304);
        assert.deepEqual([text, headers['etag'], headers['vary']], ['', etag, 'Accept']);
        assert.deepEqual([headers['content-type'], headers['content-length']], [undefined, undefined]);
        assert.equal(headers['cache-control'], 'private, no-cache');
      }
    });

  it('answers 200 to a client with another version or another representation', async () => {
    await request(versioned).get('/').set('If-None-Match', '"v2-json"').expect(200);
    await request(versioned).get('/').set('If-None-Match', '"v3-yaml"').expect(200);
  });

  it('does not format a value that the client already has', async () => {
    const handler = handlerOf({ version: 'v3', value: { toJSON: () => assert.fail('formatted') } });
    await request(handler).get('/').set('If-None-Match', '"v3-json"').expect(304);
  });

  it('answers HEAD as GET without the body, and 304 to no other methods than these', async () => {
    const { headers } = await request(versioned).get('/');
    const head = await request(versioned).head('/').expect(200);
    assert.equal(head.text, undefined);
    for (const name of ['content-length', 'content-type', 'etag', 'vary'])
      assert.equal(head.headers[name], headers[name]);
    await request(versioned).head('/').set('If-None-Match', '"v3-json"').expect(304);
    await request(versioned).post('/').set('If-None-Match', '*').expect(200, hotel);
  });

  it('keeps a Cache-Control and a Vary that were set before', async () => {
    const before: Middleware = (ctx, next) => {
      ctx.set({ Vary: 'Origin', 'Cache-Control': 'no-store' });
      return next();
    };
    const get = request(handlerOf({ before })).get('/');
    await get.expect('Vary', 'Origin, Accept').expect('Cache-Control', 'no-store').expect(200);
  });
});

describe('a stored response', () => {
  const render = (accept?: string, version: string | undefined = '3') => {
    const headers = { Location: 'https://x.test/h1' };
    return renderResponse(representations.choose(accept), hotel, { title: 'Hotel', version, status: 201, headers });
  };

  function send(response: StoredResponse, isReplayed: boolean) {
    const app = new Koa().use((ctx) => sendStoredResponse(ctx, response, isReplayed));
    return request(app.callback()).post('/').expect(201);
  }

  for (const accept of [undefined, 'application/yaml', 'text/html'])
    it(`is the same after it was stored as text, and marked as replayed: ${accept}`, async () => {
      const response = render(accept);
      const [first, again] = [await send(response, false), await send(JSON.parse(JSON.stringify(response)), true)];
      assert.equal(again.text, first.text);
      const { date: _first, ...headers } = first.headers;
      const { date: _again, 'idempotent-replayed': replayed, ...others } = again.headers;
      assert.deepEqual([others, replayed], [headers, 'true']);
    });

  it('has the tag, the type and the location of its value', async () => {
    const { headers, body } = await send(render(), false);
    const { etag, location, vary, 'content-type': type, 'cache-control': cache } = headers;
    assert.deepEqual([etag, type, location], ['"3-json"', 'application/json', 'https://x.test/h1']);
    assert.deepEqual([vary, cache, body], ['Accept', 'private, no-cache', hotel]);
  });

  it('without a version is tagged by its bytes', () => {
    const options = { title: '', version: undefined, status: 201, headers: {} };
    const { headers } = renderResponse(representations.choose(undefined), {}, options);
    assert.match(headers['ETag'] ?? '', /^"[\w-]{22}"$/);
  });
});

describe('redirectTo', () => {
  for (const [location, expected] of [
    ['/travel/v1/messages/?a=1&a=%2F', '/travel/v1/messages/?a=1&a=%2F'],
    ['//evil.example/', '/evil.example/'],
    ['/\\evil.example/', '/evil.example/'],
    ['///\\/evil.example/', '/evil.example/'],
  ] as const)
    it(`answers 308 with Location ${expected} and no body for ${location}`, async () => {
      const app = new Koa().use((ctx) => redirectTo(ctx, location));
      const { headers, text } = await request(app.callback()).post('/').redirects(0).expect(308);
      assert.deepEqual([headers['location'], headers['content-type'], text], [expected, undefined, '']);
    });
});

describe('isRead', () => {
  const app = new Koa().use(createProblemResponses()).use((ctx) => {
    if (isRead(ctx, '/one')) ctx.body = 'read';
  });
  const allow = 'GET, HEAD, OPTIONS';

  it('leaves GET and HEAD to the caller, and answers OPTIONS with the methods', async () => {
    await request(app.callback()).get('/one').expect(200, 'read');
    await request(app.callback()).head('/one').expect(200);
    const { text } = await request(app.callback()).options('/one').expect(204).expect('Allow', allow);
    assert.equal(text, '');
  });

  it('refuses another method with 405 and the methods, and another path with 404', async () => {
    const detail = `This resource takes ${allow}.`;
    const body = { code: 405, message: '405: Method Not Allowed', detail };
    await request(app.callback()).post('/one').expect('Allow', allow).expect(405, body);
    await request(app.callback()).post('/other').expect(404);
  });
});
