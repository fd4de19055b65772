/** Content negotiation for hand-written handlers, in a plain Koa app. */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import Koa, { type Context } from 'koa';
import Router from 'koa-router';
import request from 'supertest';
import { problem } from '#http';
import { type NegotiateOptions, negotiate } from '#rest';

const notFound = { code: 404, message: '404: Not Found' };

function serve(handle: (ctx: Context) => unknown, options?: NegotiateOptions) {
  const app = new Koa({ env: 'test' }).on('error', () => {});
  app.use(negotiate(options)).use(async (ctx) => void (await handle(ctx)));
  return app.callback();
}

describe('negotiate', () => {
  const tea = serve(
    (ctx) => {
      ctx.body = { name: 'Tea' };
    },
    { title: 'Products' },
  );

  it('renders the body as JSON, YAML or HTML', async () => {
    const get = (accept: string) => request(tea).get('/').set('Accept', accept).expect(200).expect('Vary', 'Accept');
    await get('*/*').expect('Content-Type', 'application/json').expect('{"name":"Tea"}\n');
    await get('application/yaml').expect('Content-Type', 'application/yaml').expect('name: Tea\n');
    const { text } = await get('text/html').expect('Content-Type', 'text/html; charset=utf-8');
    assert.match(text, /<h1>Products<\/h1>/);
    await request(tea).get('/').expect(200, { name: 'Tea' });
  });

  it('responds 304 to the ETag of the representation, and 412 to another one', async () => {
    const { headers } = await request(tea).get('/').expect(200);
    const { etag = '' } = headers;
    await request(tea).get('/').set('If-None-Match', etag).expect(304, '');
    await request(tea).get('/').set({ 'If-None-Match': etag, Accept: 'application/yaml' }).expect(200);
    await request(tea)
      .get('/')
      .set('If-Match', '"other"')
      .expect(412, /"code":412/);
    await request(tea).head('/').expect(200).expect('ETag', etag);
  });

  it('responds 406 with the list of representations, as JSON', async () => {
    const { body } = await request(tea).get('/').set('Accept', 'image/png').expect(406);
    assert.equal(body.detail, 'This resource is available as application/json, application/yaml, text/html.');
  });

  it('rejects a change before it is made, if its response would not be acceptable', async () => {
    let changes = 0;
    const handler = serve((ctx) => {
      changes += 1;
      ctx.status = 201;
      ctx.body = { changes };
    });
    await request(handler).post('/').set('Accept', 'image/png').expect(406);
    assert.equal(changes, 0);
    const created = await request(handler).post('/').set('Accept', 'application/yaml').expect(201, 'changes: 1\n');
    assert.deepEqual([created.headers['vary'], created.headers['etag']], ['Accept', undefined]);
  });

  it('renders thrown errors, paths that nothing handles and refusals without a body as the error body', async () => {
    await request(serve(() => {}))
      .get('/x')
      .set('Accept', 'image/png')
      .expect(404, notFound);
    await request(serve(() => {}))
      .delete('/x')
      .expect(404, notFound);
    const gone = () => {
      throw problem('gone', { detail: 'Sold.' });
    };
    await request(serve(gone))
      .get('/')
      .set('Accept', 'application/yaml')
      .expect(410, /^code: 410\n/);
    await request(serve((ctx) => ctx.throw(402, 'Pay.')))
      .get('/')
      .expect(402, /"detail":"Pay."/);
    const bug = () => {
      throw new Error('secret');
    };
    await request(serve(bug)).get('/').expect(500, { code: 500, message: '500: Internal Server Error' });
  });

  it('keeps the headers of a refusal, such as the methods that koa-router lists', async () => {
    const router = new Router().get('/tea', () => {});
    const app = new Koa().use(negotiate()).use(router.routes()).use(router.allowedMethods());
    await request(app.callback())
      .delete('/tea')
      .expect(405, { code: 405, message: '405: Method Not Allowed' })
      .expect('Allow', 'HEAD, GET');
  });

  for (const [what, body, type, text] of [
    ['text', 'Tea', 'text/plain; charset=utf-8', 'Tea'],
    ['a buffer', Buffer.from('Tea'), 'application/octet-stream', undefined],
    ['a stream', Readable.from(['Tea']), 'application/octet-stream', undefined],
  ] as const)
    it(`sends ${what} as it is`, async () => {
      const handler = serve((ctx) => {
        ctx.body = body;
      });
      const response = await request(handler).get('/').set('Accept', 'application/yaml').expect(200);
      assert.deepEqual([response.headers['content-type'], response.text], [type, text]);
    });

  it('sends data with a type of the handler as JSON of that type', async () => {
    const handler = serve((ctx) => {
      ctx.type = 'application/geo+json';
      ctx.body = { type: 'Point' };
    });
    await request(handler)
      .get('/')
      .expect('Content-Type', /^application\/geo\+json/)
      .expect('{"type":"Point"}');
  });

  it('leaves a response without a body alone', async () => {
    const handler = serve((ctx) => {
      ctx.status = 204;
    });
    await request(handler).delete('/').expect(204, '');
  });
});
