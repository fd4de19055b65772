/** Rejected and late bodies: the client receives the response, and the access log has the same status. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import Koa from 'koa';
import { createAccessLog, createAddresses, createRequestContext } from '#http';
import { type EdgeOptions, startEdge } from '../../support/edge.ts';
import { testServers } from '../../support/serve.ts';
import { startUpstream } from '../../support/upstream.ts';
import { createDeferred } from '../../support/waiting.ts';
import { startHttp } from '../../support/wire/http-server.ts';
import { rawRequest, sendRaw } from '../../support/wire/raw-client.ts';

const servers = testServers();

async function startFront(options: EdgeOptions, requestTimeoutMs = 30_000) {
  const { listener: handler } = await startEdge(servers, options);
  return startHttp(servers, { requestTimeoutMs, handler });
}

const mebibyte = Buffer.alloc(1024 * 1024, 'x');

/** Writes the whole body before it looks at the response, as many clients do. */
function post(port: number, mebibytes: number, headers: Record<string, string | number>): Promise<number> {
  return new Promise((resolve, reject) => {
    const sending = request({ port, host: '127.0.0.1', path: '/v1/hotels', method: 'POST', headers }, (res) => {
      res.resume().once('end', () => resolve(res.statusCode ?? 0));
    });
    sending.once('error', reject);
    for (let count = 0; count < mebibytes; count += 1) sending.write(mebibyte);
    sending.end();
  });
}

describe('a request body', () => {
  it('of 16 MiB that is too large gets a 413, with Content-Length or in chunks', async () => {
    const upstream = await startUpstream(servers);
    const { port } = await startFront({ upstream, mapping: { maxRequestBytes: 100_000 } });
    assert.equal(await post(port, 16, { 'Content-Length': 16 * mebibyte.length }), 413);
    assert.equal(await post(port, 16, { 'Transfer-Encoding': 'chunked' }), 413);
    assert.deepEqual(upstream.reached, []);
  });

  it('of 16 MiB that is too large gets a 413 even if the client does not wait after Expect: 100-continue', async () => {
    const { port } = await startFront({ upstream: await servers.refusing(), mapping: { maxRequestBytes: 100_000 } });
    const socket = connect(port, '127.0.0.1');
    const length = 16 * mebibyte.length;
    socket.write(rawRequest('POST /v1/hotels', [`Content-Length: ${length}`, 'Expect: 100-continue']));
    // The client reads nothing before it has written everything.
    await promisify(socket.write).call(socket, Buffer.alloc(length));
    assert.match(await text(socket), /^HTTP\/1\.1 413 /);
  });

  it('that is incomplete when the request is rejected closes the connection, so that no request is taken for its rest', async () => {
    const { port } = await startFront({ upstream: await servers.refusing() });
    const post = (body: string) => `POST /nothing HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n${body}`;
    for (const [body, connection] of [
      ['abcdef', 'keep-alive'],
      ['abc', 'close'],
    ] as const) {
      const socket = connect(port, '127.0.0.1').setEncoding('latin1');
      socket.write(post(body));
      const [response] = await once(socket, 'data');
      socket.destroy();
      assert.match(String(response), new RegExp(`^HTTP/1\\.1 404 [^]*\r\nConnection: ${connection}\r\n`));
    }
  });

  it('to a service has no size limit if the mapping has none', async () => {
    const received = createDeferred();
    let bytes = 0;
    const upstream = await servers.http((req, res) => {
      req.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
      });
      req.once('end', () => {
        received.resolve();
        res.end();
      });
    });
    const { port } = await startFront({ upstream });
    assert.equal(await post(port, 24, { 'Content-Length': 24 * mebibyte.length }), 200);
    await received.promise;
    assert.equal(bytes, 24 * mebibyte.length);
  });

  it('to a service may take longer than the request time-out', async () => {
    const upstream = await startUpstream(servers);
    const { port } = await startFront({ upstream }, 30);
    const socket = connect(port, '127.0.0.1');
    socket.write(rawRequest('POST /v1/hotels', ['Content-Length: 6']));
    for (const part of ['ab', 'cd', 'ef']) {
      await sleep(30);
      socket.write(part);
    }
    assert.match(await text(socket), /^HTTP\/1\.1 200 /);
    assert.equal(upstream.only().body, 'abcdef');
  });

  it('that arrives late gets a 408, in the log too', async () => {
    const lines: object[] = [];
    const logged = createDeferred();
    const info = (fields: object) => {
      lines.push(fields);
      logged.resolve();
    };
    const app = new Koa();
    app.use(createRequestContext(createAddresses())).use(createAccessLog({ info, warn() {}, error() {} }));
    app.use(async ({ req }) => void (await once(req, 'close')));
    const { port } = await startHttp(servers, { requestTimeoutMs: 30, handler: app.callback() });
    assert.match(await sendRaw(port, rawRequest('POST /', ['Content-Length: 6'], 'ab')), /^HTTP\/1\.1 408 /);
    await logged.promise;
    assert.deepEqual(
      lines.map((line) => (line as { status: number }).status),
      [408],
    );
  });
});
