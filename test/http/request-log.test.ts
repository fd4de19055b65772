import assert from 'node:assert/strict';
import Koa, { type Context } from 'koa';
import request from 'supertest';
import {
  createAddresses,
  createRequestContext,
  type Logger,
  logRequest,
  requestContext,
  requestLogFields,
  silentLogger,
} from '#http';

const traceId = '0af7651916cd43dd8448eb211c80319c';

async function during(run: (ctx: Context) => void): Promise<void> {
  const app = new Koa();
  app.use(createRequestContext(createAddresses()));
  app.use((ctx) => {
    run(ctx);
    ctx.status = 204;
  });
  await request(app.callback())
    .get('/')
    .set({ 'X-Request-Id': 'one', traceparent: `00-${traceId}-b7ad6b7169203331-00` })
    .expect(204);
}

describe('a line of the log that speaks of a request', () => {
  it('names the request and its trace before it says anything else', async () => {
    const lines: unknown[] = [];
    const logger: Logger = { ...silentLogger, isLevelEnabled: () => true, warn: (...line) => void lines.push(line) };
    await during((ctx) => {
      assert.deepEqual(requestLogFields(ctx), { requestId: 'one', traceId });
      logRequest(logger, 'warn', ctx, { reason: 'late' }, 'no answer');
    });
    assert.deepEqual(lines, [[{ requestId: 'one', traceId, reason: 'late' }, 'no answer']]);
  });

  it('costs nothing at a level that is off: not even an id is made', async () => {
    const logger: Logger = { ...silentLogger, isLevelEnabled: () => false, warn: () => assert.fail('written') };
    await during((ctx) => {
      logRequest(logger, 'warn', ctx, {}, 'no answer');
      assert.equal(requestContext(ctx).trace, undefined);
    });
  });

  it('is written where the logger cannot tell its level', async () => {
    const { info, warn } = silentLogger;
    const lines: unknown[] = [];
    await during((ctx) => logRequest({ info, warn, error: (...line) => void lines.push(line) }, 'error', ctx, {}, 'x'));
    assert.deepEqual(lines, [[{ requestId: 'one', traceId }, 'x']]);
  });
});
