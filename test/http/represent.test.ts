import assert from 'node:assert/strict';
import Koa, { type Context, type Middleware } from 'koa';
import request from 'supertest';
import { createRepresentations, represent } from '#http';

const hotel = { id: 'h1', name: 'Zum <Bären>' };

function handlerOf({
  version,
  value = hotel,
  before,
}: {
  version?: string;
  value?: unknown;
  before?: Middleware;
} = {}) {
  const representations = createRepresentations();
  const app = new Koa();
  if (before !== undefined) app.use(before);
  app.use((ctx: Context) => {
    represent(ctx, representations.choose(ctx.req.headers.accept), value, { title: 'Hotel', version });
  });
  return app.callback();
}

describe('represent', () => {
  it('sends JSON with a tag of the version and the representation, and says that both depend on Accept', async () => {
    const { headers, text } = await request(handlerOf({ version: 'v3' }))
      .get('/')
      .expect(200, hotel);
    assert.equal(text, '{"id":"h1","name":"Zum <Bären>"}');
    assert.equal(headers['content-type'], 'application/json');
    assert.equal(headers['content-length'], String(Buffer.byteLength(text)));
    assert.equal(headers['etag'], '"v3-json"');
    assert.equal(headers['vary'], 'Accept');
    assert.equal(headers['cache-control'], 'private, no-cache');
  });

  it('sends YAML and HTML to those who ask for them, each with a tag of its own', async () => {
    const handler = handlerOf({ version: 'v3' });
    await request(handler)
      .get('/')
      .set('Accept', 'application/yaml')
      .expect('ETag', '"v3-yaml"')
      .expect(200, /^id: h1\n/);
    await request(handler)
      .get('/')
      .set('Accept', 'text/html')
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

  function checkUnchanged(ifNoneMatch: string) {
    it(`answers 304 without a body for If-None-Match: ${ifNoneMatch}, by version and by digest`, async () => {
      for (const version of ['v3', undefined]) {
        const handler = handlerOf(version === undefined ? {} : { version });
        const { etag } = (await request(handler).get('/')).headers;
        const { headers, text } = await request(handler)
          .get('/')
          .set('If-None-Match', ifNoneMatch.replace('"tag"', String(etag)))
          .expect(304);
        assert.equal(text, '');
        assert.equal(headers['etag'], etag);
        assert.equal(headers['vary'], 'Accept');
        assert.equal(headers['cache-control'], 'private, no-cache');
        assert.equal(headers['content-type'], undefined);
        assert.equal(headers['content-length'], undefined);
      }
    });
  }

  checkUnchanged('"tag"');
  checkUnchanged('W/"tag"');
  checkUnchanged('"other", "tag"');
  checkUnchanged('*');

  it('sends the whole when the client holds another version, or another representation of this one', async () => {
    const handler = handlerOf({ version: 'v3' });
    await request(handler).get('/').set('If-None-Match', '"v2-json"').expect(200);
    await request(handler).get('/').set('If-None-Match', '"v3-yaml"').expect(200);
  });

  it('does not format what the client has already', async () => {
    const value = {
      toJSON() {
        throw new Error('formatted');
      },
    };
    await request(handlerOf({ version: 'v3', value }))
      .get('/')
      .set('If-None-Match', '"v3-json"')
      .expect(304);
  });

  it('answers HEAD as GET without the body', async () => {
    const handler = handlerOf({ version: 'v3' });
    const { headers } = await request(handler).get('/');
    const head = await request(handler).head('/').expect(200);
    assert.equal(head.text, undefined);
    for (const name of ['content-length', 'content-type', 'etag', 'vary'])
      assert.equal(head.headers[name], headers[name]);
    await request(handler).head('/').set('If-None-Match', '"v3-json"').expect(304);
  });

  it('does not answer 304 to a method that has done something', async () => {
    await request(handlerOf({ version: 'v3' }))
      .post('/')
      .set('If-None-Match', '*')
      .expect(200, hotel);
  });

  it('keeps the Cache-Control and the Vary that were set before', async () => {
    const before: Middleware = (ctx, next) => {
      ctx.set({ Vary: 'Origin', 'Cache-Control': 'no-store' });
      return next();
    };
    await request(handlerOf({ before }))
      .get('/')
      .expect('Vary', 'Origin, Accept')
      .expect('Cache-Control', 'no-store')
      .expect(200);
  });
});
