/** The rate-limit server, called by a generic gRPC client: status codes, health checks and graceful shutdown. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { mock } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Client, credentials } from '@grpc/grpc-js';
import {
  CountersUnavailable,
  createLimiter,
  type Limiter,
  type RateLimitServer,
  type RateLimitServerOptions,
  serveRateLimit,
} from '#ratelimit';
import { closeOf, createDeferred } from '../../support/waiting.ts';

const limiter = createLimiter({ limits: [] });
const rateLimit = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';
const health = '/grpc.health.v1.Health';
const hex = (text: string) => Buffer.from(text, 'hex');
const identity = (bytes: Buffer) => bytes;
const empty = Buffer.alloc(0);
const onlyDomain = hex('0a0164');
const serving = '0801';
const notServing = '0802';
/** Longer than the time-out of a test. */
const tooLongMs = 600_000;

/** Encodes a message whose field 1 is a string. */
const named = (text: string) => Buffer.concat([Buffer.from([0x0a, text.length]), Buffer.from(text)]);

describe('the rate-limit server', () => {
  let server: RateLimitServer;
  let client: Client;
  let logged: { err?: Error }[];
  let shouldRateLimit: Limiter['shouldRateLimit'];

  beforeEach(async () => {
    logged = [];
    shouldRateLimit = limiter.shouldRateLimit;
    server = await serveRateLimit({
      limiter: { shouldRateLimit: (request) => shouldRateLimit(request) },
      port: 0,
      logger: { error: (fields) => logged.push(fields) },
    });
    client = new Client(`127.0.0.1:${server.port}`, credentials.createInsecure());
  });

  afterEach(async () => {
    client.close();
    // Some tests have already closed it.
    await server.close(100);
  });

  function call(path: string, message: Buffer): Promise<string> {
    return new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        path,
        identity,
        identity,
        message,
        { deadline: Date.now() + 30_000 },
        (error, response) => (error === null ? resolve(response?.toString('hex') ?? '') : reject(error)),
      );
    });
  }

  const checkRefused = (path: string, message: Buffer, code: number, details: string) =>
    assert.rejects(call(path, message), { code, details });

  /** Resolves when the first status has arrived. */
  async function watch(message = empty) {
    const stream = client.makeServerStreamRequest(`${health}/Watch`, identity, identity, message);
    const received: string[] = [];
    stream.on('error', () => {}).on('data', (status: Buffer) => received.push(status.toString('hex')));
    await once(stream, 'data');
    return { stream, received };
  }

  it('rejects a request that exceeds a bound with INVALID_ARGUMENT and the reason', async () => {
    const descriptors = Array.from({ length: 65 }, () => hex('1200'));
    const tooMany = Buffer.concat([onlyDomain, ...descriptors]);
    await checkRefused(rateLimit, tooMany, 3, 'descriptors has 65 descriptors, more than the maximum of 64');
    assert.deepEqual(logged, []);
  });

  it('responds with INTERNAL when the limiter fails or returns no decision, and only logs the reason', async () => {
    const noDecision = /^TypeError: the limiter returned no decision: its result has no statuses$/;
    for (const [decide, reason] of [
      [() => Promise.reject(new Error('secret')), /secret/],
      [() => assert.fail('secret'), /secret/],
      [() => undefined, noDecision],
      [() => ({ overallCode: 'OK' }), noDecision],
      [async () => undefined, noDecision],
    ] as const) {
      logged = [];
      shouldRateLimit = decide as Limiter['shouldRateLimit'];
      await checkRefused(rateLimit, onlyDomain, 13, 'the rate-limit service could not decide');
      assert.equal(logged.length, 1);
      assert.match(String(logged[0]?.err), reason);
    }
  });

  it('responds with UNAVAILABLE while hits cannot be counted, and leaves logging to the counters', async () => {
    shouldRateLimit = () => Promise.reject(new CountersUnavailable('away'));
    await checkRefused(rateLimit, onlyDomain, 14, 'hits cannot be counted at the moment');
    assert.deepEqual(logged, []);
  });

  it('reports the health of itself and its services, and NOT_FOUND for others', async () => {
    const services = ['envoy.service.ratelimit.v3.RateLimitService', 'pb.lyft.ratelimit.RateLimitService', 'ratelimit'];
    for (const expected of [serving, notServing, serving]) {
      server.setServing(expected === serving);
      for (const message of [empty, ...services.map(named)])
        assert.equal(await call(`${health}/Check`, message), expected);
    }
    await checkRefused(`${health}/Check`, named('x'), 5, 'unknown service');
    const list = hex(await call(`${health}/List`, empty)).toString('latin1');
    for (const service of services) assert.ok(list.includes(service), list);
  });

  it('sends every change of its health to watches once, except to those of unknown services', async () => {
    const [{ stream, received }, unknown] = [await watch(), await watch(named('x'))];
    for (const isServing of [true, false, false, true]) server.setServing(isServing);
    while (received.length < 3) await once(stream, 'data');
    await call(`${health}/List`, empty);
    for (const one of [stream, unknown.stream]) one.cancel();
    assert.deepEqual([received, unknown.received], [[serving, notServing, serving], ['0803']]);
  });

  it('rejects more than 100 concurrent health watches', async () => {
    const watches = await Promise.all(Array.from({ length: 100 }, () => watch()));
    await assert.rejects(watch(), { code: 8 });
    for (const { stream } of watches) stream.cancel();
  });

  it('sends NOT_SERVING to watches and ends them when it closes', async () => {
    const { stream, received } = await watch();
    const ended = once(stream, 'status');
    await server.close(tooLongMs);
    const [{ code }] = await ended;
    assert.deepEqual([received, code], [[serving, notServing], 0]);
  });

  it('fails to start with an error code and a remedy when it cannot listen', async () => {
    const logger = { error() {} };
    await assert.rejects(serveRateLimit({ limiter, port: server.port, logger }), {
      code: 'EADDRINUSE',
      message: `cannot listen on 127.0.0.1:${server.port} (EADDRINUSE): another process uses the port: stop it, or choose another port (0 picks a free one)`,
    });
    const foreign = serveRateLimit({ limiter, host: '192.0.2.1', port: 0, logger });
    await assert.rejects(foreign, { code: 'EADDRNOTAVAIL' });
  });

  it('leaves no timer running when it cannot listen', async () => {
    const [set, cleared] = [mock.method(globalThis, 'setInterval'), mock.method(globalThis, 'clearInterval')];
    try {
      await assert.rejects(serveRateLimit({ limiter, port: server.port, logger: { error() {} } }));
      const started = set.mock.calls.map(({ result }) => result);
      assert.ok(started.length > 0);
      assert.deepEqual(
        started,
        cleared.mock.calls.map(({ arguments: [timer] }) => timer),
      );
    } finally {
      mock.restoreAll();
    }
  });

  it('rejects an invalid limiter or logger', async () => {
    const limiter = { shouldRateLimit: () => assert.fail('called') };
    for (const [parts, message] of [
      [{ limiter: {}, logger: console }, /^TypeError: the limiter has no function `shouldRateLimit`/],
      [{ limiter }, /^TypeError: the logger has no function `error`/],
    ] as const)
      await assert.rejects(serveRateLimit({ ...parts, port: 0 } as unknown as RateLimitServerOptions), message);
  });

  it('lets running calls finish when it closes, and accepts none afterwards', async () => {
    const [called, released] = [createDeferred(), createDeferred()];
    shouldRateLimit = async () => {
      called.resolve();
      await released.promise;
      return { overallCode: 'OK', statuses: [] };
    };
    const pending = call(rateLimit, onlyDomain);
    await called.promise;
    const closed = server.close(Number.POSITIVE_INFINITY);
    await Promise.race([closed, delay(100)]);
    released.resolve();
    assert.equal(await pending, '0801');
    await closed;
    await assert.rejects(call(rateLimit, onlyDomain), { code: 14 });
  });

  it('aborts calls that do not finish by the deadline of a shutdown', async () => {
    const called = createDeferred();
    shouldRateLimit = () => {
      called.resolve();
      return new Promise(() => {});
    };
    // Depending on what it has read before, the client reports the end of its connection as UNAVAILABLE or INTERNAL.
    const pending = assert.rejects(call(rateLimit, onlyDomain), ({ code }) => [13, 14].includes(code));
    await called.promise;
    await server.close(20);
    await pending;
  });

  it('survives HTTP/1 clients, and does not wait for silent connections when it closes', async () => {
    const rude = connect(server.port, '127.0.0.1', () => rude.end('GET / HTTP/1.1\r\n\r\n'));
    rude.on('error', () => {}).resume();
    await closeOf(rude);
    const silent = connect(server.port, '127.0.0.1');
    await once(silent, 'connect');
    const gone = closeOf(silent.resume());
    // Once the server has responded to a later connection, it has accepted this one.
    assert.equal(await call(rateLimit, onlyDomain), '0801');
    client.close();
    await server.close(tooLongMs);
    await gone;
  });
});
