/** The rate-limit port, as a generic gRPC client sees it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { Client, credentials } from '@grpc/grpc-js';
import {
  CountersUnavailable,
  createLimiter,
  type Decision,
  type Limiter,
  type RateLimitServer,
  type RateLimitServerOptions,
  serveRateLimit,
} from '#ratelimit';
import { closeOf, createSignal } from '../../support/waiting.ts';

const limiter = createLimiter({ limits: [] });
const rateLimit = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';
const health = '/grpc.health.v1.Health';
const hex = (text: string) => Buffer.from(text, 'hex');
const identity = (bytes: Buffer) => bytes;
const empty = Buffer.alloc(0);
const onlyDomain = hex('0a0164');
const serving = '0801';
const notServing = '0802';
/** Longer than a test may take. */
const tooLongMs = 600_000;

/** A message whose field 1 is a text. */
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
    // For some tests the second time.
    await server.close(100);
  });

  function call(path: string, message: Buffer): Promise<string> {
    return new Promise((resolve, reject) => {
      client.makeUnaryRequest(path, identity, identity, message, { deadline: Date.now() + 30_000 }, (error, answer) =>
        error === null ? resolve(answer?.toString('hex') ?? '') : reject(error),
      );
    });
  }

  const checkRefused = (path: string, message: Buffer, code: number, details: string) =>
    assert.rejects(call(path, message), { code, details });

  /** Has heard the first status. */
  async function watch(message = empty) {
    const stream = client.makeServerStreamRequest(`${health}/Watch`, identity, identity, message);
    const heard: string[] = [];
    stream.on('error', () => {}).on('data', (status: Buffer) => heard.push(status.toString('hex')));
    await once(stream, 'data');
    return { stream, heard };
  }

  it('answers INVALID_ARGUMENT with the reason to a request beyond a bound', async () => {
    const descriptors = Array.from({ length: 65 }, () => hex('1200'));
    const tooMany = Buffer.concat([onlyDomain, ...descriptors]);
    await checkRefused(rateLimit, tooMany, 3, 'descriptors has 65 descriptors, more than the maximum of 64');
    assert.deepEqual(logged, []);
  });

  it('answers INTERNAL without the reason when the limiter fails, and logs the reason', async () => {
    for (const fail of [() => Promise.reject(new Error('secret')), () => assert.fail('secret')]) {
      logged.length = 0;
      shouldRateLimit = fail;
      await checkRefused(rateLimit, onlyDomain, 13, 'the rate-limit service could not decide');
      assert.match(String(logged[0]?.err), /secret/);
    }
  });

  it('answers UNAVAILABLE while hits cannot be counted, and logs nothing: the counters do', async () => {
    shouldRateLimit = () => Promise.reject(new CountersUnavailable('away'));
    await checkRefused(rateLimit, onlyDomain, 14, 'hits cannot be counted now');
    assert.deepEqual(logged, []);
  });

  it('answers health checks for itself and its services, and for no other', async () => {
    const services = ['envoy.service.ratelimit.v3.RateLimitService', 'pb.lyft.ratelimit.RateLimitService', 'ratelimit'];
    for (const expected of [serving, notServing, serving]) {
      server.setServing(expected === serving);
      for (const message of [empty, ...services.map(named)])
        assert.equal(await call(`${health}/Check`, message), expected);
    }
    await checkRefused(`${health}/Check`, named('x'), 5, 'there is no such service here');
    const list = hex(await call(`${health}/List`, empty)).toString('latin1');
    for (const service of services) assert.ok(list.includes(service), list);
  });

  it('sends each change of its health once to a watch, and none to that of an unknown service', async () => {
    const [{ stream, heard }, unknown] = [await watch(), await watch(named('x'))];
    for (const isServing of [true, false, false, true]) server.setServing(isServing);
    while (heard.length < 3) await once(stream, 'data');
    await call(`${health}/List`, empty);
    for (const one of [stream, unknown.stream]) one.cancel();
    assert.deepEqual([heard, unknown.heard], [[serving, notServing, serving], ['0803']]);
  });

  it('refuses more than 100 watches of its health at once', async () => {
    const watches = await Promise.all(Array.from({ length: 100 }, () => watch()));
    await assert.rejects(watch(), { code: 8 });
    for (const { stream } of watches) stream.cancel();
  });

  it('ends watches with NOT_SERVING when it closes, and does not wait for them', async () => {
    const { stream, heard } = await watch();
    const ended = once(stream, 'status');
    await server.close(tooLongMs);
    const [{ code }] = await ended;
    assert.deepEqual([heard, code], [[serving, notServing], 0]);
  });

  it('answers INTERNAL to a decision that is none, and logs it', async () => {
    for (const decision of [undefined, { overallCode: 'OK' }, Promise.resolve(undefined)]) {
      logged = [];
      shouldRateLimit = () => decision as Decision;
      await checkRefused(rateLimit, onlyDomain, 13, 'the rate-limit service could not decide');
      assert.deepEqual(
        logged.map(({ err }) => err?.message),
        ['the limiter answered without statuses, which is no decision'],
      );
    }
  });

  it('rejects with the code and a remedy when it cannot listen', async () => {
    const logger = { error() {} };
    await assert.rejects(serveRateLimit({ limiter, port: server.port, logger }), {
      code: 'EADDRINUSE',
      message: `The rate-limit server cannot listen on 127.0.0.1:${server.port} (EADDRINUSE): another process has the port; stop it or choose another port (0 picks a free one).`,
    });
    const foreign = serveRateLimit({ limiter, host: '192.0.2.1', port: 0, logger });
    await assert.rejects(foreign, { code: 'EADDRNOTAVAIL' });
  });

  it('rejects what is no limiter and what is no logger', async () => {
    const limiter = { shouldRateLimit: () => assert.fail('asked') };
    for (const [parts, message] of [
      [{ limiter: {}, logger: console }, /^TypeError: the limiter has no function `shouldRateLimit`/],
      [{ limiter }, /^TypeError: the logger has no function `error`/],
    ] as const)
      await assert.rejects(serveRateLimit({ ...parts, port: 0 } as unknown as RateLimitServerOptions), message);
  });

  it('lets a running call finish while it closes, and answers none afterwards', async () => {
    const [asked, released] = [createSignal(), createSignal()];
    shouldRateLimit = async () => {
      asked.give();
      await released.given;
      return { overallCode: 'OK', statuses: [] };
    };
    const pending = call(rateLimit, onlyDomain);
    await asked.given;
    const closed = server.close(Number.POSITIVE_INFINITY);
    await Promise.race([closed, delay(100)]);
    released.give();
    assert.equal(await pending, '0801');
    await closed;
    await assert.rejects(call(rateLimit, onlyDomain), { code: 14 });
  });

  it('ends a call that does not finish by the deadline of its close', async () => {
    const asked = createSignal();
    shouldRateLimit = () => {
      asked.give();
      return new Promise(() => {});
    };
    // What the client makes of the end of its connection depends on what it has read before: UNAVAILABLE or INTERNAL.
    const pending = assert.rejects(call(rateLimit, onlyDomain), ({ code }) => [13, 14].includes(code));
    await asked.given;
    await server.close(20);
    await pending;
  });

  it('survives clients of HTTP/1, and does not wait for those that never send anything', async () => {
    const rude = connect(server.port, '127.0.0.1', () => rude.end('GET / HTTP/1.1\r\n\r\n'));
    rude.on('error', () => {}).resume();
    await closeOf(rude);
    const silent = connect(server.port, '127.0.0.1');
    await once(silent, 'connect');
    const gone = closeOf(silent.resume());
    // The server has accepted it when it has answered a later one.
    assert.equal(await call(rateLimit, onlyDomain), '0801');
    client.close();
    await server.close(tooLongMs);
    await gone;
  });
});
