/** The trace of a request, as every layer of it sees it. */
import assert from 'node:assert/strict';
import Koa from 'koa';
import request from 'supertest';
import { createAddresses, createRequestContext, type Trace, traceHeaders, traceOf } from '#http';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const parentId = 'b7ad6b7169203331';

async function traceFor(headers: Readonly<Record<string, string>>): Promise<Trace> {
  const seen: Trace[] = [];
  const app = new Koa();
  app.use(createRequestContext(createAddresses()));
  app.use(async (ctx, next) => {
    seen.push(traceOf(ctx));
    await next();
  });
  app.use((ctx) => {
    seen.push(traceOf(ctx));
    ctx.status = 204;
  });
  const answer = await request(app.callback()).get('/').set(headers).expect(204);
  assert.equal(answer.headers['traceparent'], undefined);
  const [trace, again] = seen;
  assert.ok(trace !== undefined && trace === again);
  return trace;
}

describe('the trace of a request', () => {
  it('is the one that it came with, under an id of ours', async () => {
    const trace = await traceFor({ traceparent: `00-${traceId}-${parentId}-01`, tracestate: 'a=1' });
    assert.deepEqual({ ...trace, spanId: '' }, { traceId, spanId: '', flags: 1, state: 'a=1', startCall: undefined });
    assert.match(trace.spanId, /^[\da-f]{16}$/);
    assert.notEqual(trace.spanId, parentId);
    assert.deepEqual(traceHeaders(trace), ['traceparent', `00-${traceId}-${trace.spanId}-01`, 'tracestate', 'a=1']);
  });

  it('is a new one, which nobody records, when it came with none or one that cannot be read', async () => {
    const ids = new Set<string>();
    for (const traceparent of ['', `00-${traceId}-${parentId}-1`]) {
      const trace = await traceFor({ traceparent, tracestate: 'a=1' });
      assert.deepEqual([trace.flags, trace.state], [0, undefined]);
      assert.match(trace.traceId, /^[\da-f]{32}$/);
      assert.deepEqual(traceHeaders(trace), ['traceparent', `00-${trace.traceId}-${trace.spanId}-00`]);
      ids.add(trace.traceId);
    }
    assert.equal(ids.size, 2);
  });

  it('is there for an app that runs without createExchange', async () => {
    const app = new Koa();
    app.use((ctx) => {
      ctx.body = { one: traceOf(ctx).spanId, other: traceOf(ctx).spanId };
    });
    const { body } = await request(app.callback()).get('/').expect(200);
    assert.match(body.one, /^[\da-f]{16}$/);
    assert.equal(body.one, body.other);
  });
});
