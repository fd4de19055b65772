/** Log lines about a request: their ids. */
import assert from 'node:assert/strict';
import Koa, { type Context } from 'koa';
import request from 'supertest';
import { type Logger, silentLogger } from '#foundation';
import { createAddresses, createRequestContext, requestContext } from '#http';
import { logRequest } from '../../../src/http/log/request-log.ts';
import { type LogLine, recordingLogger } from '../../support/edge.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const ids = { 'X-Request-Id': 'one', traceparent: `00-${traceId}-b7ad6b7169203331-00` };

describe('logRequest', () => {
  async function during(run: (ctx: Context) => void): Promise<void> {
    const app = new Koa().use(createRequestContext(createAddresses())).use((ctx) => {
      run(ctx);
      ctx.status = 204;
    });
    await request(app.callback()).get('/').set(ids).expect(204);
  }

  it('begins each line with the ids of the request and its trace', async () => {
    const lines: LogLine[] = [];
    await during((ctx) => logRequest(recordingLogger(lines), 'warn', ctx, { reason: 'late' }, 'no answer'));
    const fields = { requestId: 'one', traceId, reason: 'late' };
    assert.deepEqual(lines, [{ level: 'warn', fields, message: 'no answer' }]);
  });

  it('does not create a trace when the level is off', async () => {
    const logger: Logger = { ...silentLogger, warn: () => assert.fail('written') };
    await during((ctx) => {
      logRequest(logger, 'warn', ctx, {}, 'no answer');
      assert.equal(requestContext(ctx).trace, undefined);
    });
  });
});
