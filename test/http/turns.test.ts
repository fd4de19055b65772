import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import Koa from 'koa';
import { createAccessLog, createAddresses, createProblemResponses, createRequestContext, problem } from '#http';
import { recordingLogger } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { createSignal } from '../support/waiting.ts';

describe('a response that waits for its turn', () => {
  const servers = testServers();

  /** Answers only when the client has left; tells when `count` requests came to their end. */
  async function leaveEarly(count: number, answer: (ctx: Koa.Context) => void) {
    const log: Parameters<typeof recordingLogger>[0] = [];
    const warnings: Error[] = [];
    const warn = (warning: Error) => void warnings.push(warning);
    const all = createSignal();
    const over = createSignal();
    let asked = 0;
    let ended = 0;
    const app = new Koa();
    app.silent = true;
    app.use(createRequestContext(createAddresses())).use(createAccessLog(recordingLogger(log)));
    app.use((_ctx, next) =>
      next().finally(() => {
        ended += 1;
        if (ended === count) setImmediate(() => over.give());
      }),
    );
    app.use(createProblemResponses());
    app.use(async (ctx) => {
      asked += 1;
      if (asked === count) all.give();
      await once(ctx.res, 'close');
      answer(ctx);
    });
    process.on('warning', warn);
    const { port } = await servers.http(app.callback());
    const leaving = connect(port, '127.0.0.1');
    leaving.write('GET / HTTP/1.1\r\nHost: front.example\r\n\r\n'.repeat(count));
    await all.given;
    leaving.destroy();
    await over.given;
    process.off('warning', warn);
    assert.deepEqual(warnings, []);
    return log.map(({ fields }) => fields['status']);
  }

  it('closes when its client leaves, as the one whose turn it was', async () => {
    assert.deepEqual(await leaveEarly(20, () => {}), Array(20).fill(499));
  });

  it('may be answered all the same', async () => {
    for (const answer of [
      (ctx: Koa.Context) => {
        ctx.body = 'late';
      },
      () => {
        throw problem('not-found');
      },
    ])
      assert.deepEqual(await leaveEarly(3, answer), Array(3).fill(499));
  });

  it('that had its turn closes once', async () => {
    const closes: string[] = [];
    const app = new Koa().use(createRequestContext(createAddresses())).use(async (ctx) => {
      ctx.res.on('close', () => closes.push(ctx.url));
      ctx.body = ctx.url;
    });
    const { port } = await servers.http(app.callback());
    const client = connect(port, '127.0.0.1').resume();
    client.write('GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n');
    client.write('GET /3 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    await once(client, 'close');
    assert.deepEqual(closes, ['/1', '/2', '/3']);
  });
});
