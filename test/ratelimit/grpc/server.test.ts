/** The rate-limit port, as a generic gRPC client sees it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { Client, credentials, type ServiceError } from '@grpc/grpc-js';
import { CountersUnavailable, createLimiter, type Limiter, type RateLimitServer, serveRateLimit } from '#ratelimit';
import { domain, limit, node } from '../../support/limits.ts';

const limits = [domain('d', node('k', limit(1)))];
const rateLimit = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';
const hex = (text: string) => Buffer.from(text, 'hex');
const identity = (bytes: Buffer) => bytes;

interface Refusal {
  readonly code: number;
  readonly details: string;
}

function refusal(code: number, details: string): (error: ServiceError & Refusal) => boolean {
  return (error) => {
    assert.deepEqual({ code: error.code, details: error.details }, { code, details });
    return true;
  };
}

describe('the rate-limit server', () => {
  let server: RateLimitServer;
  let client: Client;
  let logged: object[];

  async function start(limiter: Limiter = createLimiter({ limits })): Promise<void> {
    logged = [];
    server = await serveRateLimit({ limiter, port: 0, logger: { error: (fields) => logged.push(fields) } });
    client = new Client(`127.0.0.1:${server.port}`, credentials.createInsecure());
  }

  afterEach(async () => {
    client.close();
    await server.close(100);
  });

  function call(path: string, message: Buffer): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      client.makeUnaryRequest(path, identity, identity, message, { deadline: Date.now() + 5_000 }, (error, answer) =>
        error === null ? resolve(answer ?? Buffer.alloc(0)) : reject(error),
      );
    });
  }

  /** What the reflection service answers to one request. */
  async function reflect(version: string, message: Buffer): Promise<Buffer> {
    const path = `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`;
    const stream = client.makeBidiStreamRequest(path, identity, identity);
    stream.write(message);
    const [answer] = await once(stream, 'data');
    stream.end();
    return answer;
  }

  it('answers a request with only a domain, in both packages', async () => {
    await start();
    for (const path of [rateLimit, '/pb.lyft.ratelimit.RateLimitService/ShouldRateLimit'])
      assert.equal((await call(path, hex('0a0164'))).toString('hex'), '0801');
  });

  it('counts both packages together', async () => {
    await start();
    const message = hex('0a0164' + '1208' + '0a06' + '0a016b' + '120176');
    assert.equal((await call(rateLimit, message)).subarray(0, 2).toString('hex'), '0801');
    const lyft = await call('/pb.lyft.ratelimit.RateLimitService/ShouldRateLimit', message);
    assert.equal(lyft.subarray(0, 2).toString('hex'), '0802');
  });

  it('answers INVALID_ARGUMENT with the reason to a request without a domain', async () => {
    await start();
    await assert.rejects(call(rateLimit, Buffer.alloc(0)), refusal(3, 'domain must not be empty'));
    assert.deepEqual(logged, []);
  });

  it('answers INVALID_ARGUMENT with the bound to a request that is too large', async () => {
    await start();
    const descriptors = Buffer.concat(Array.from({ length: 65 }, () => hex('1200')));
    const expected = refusal(3, 'descriptors has 65 descriptors, more than 64');
    await assert.rejects(call(rateLimit, Buffer.concat([hex('0a0164'), descriptors])), expected);
  });

  it('refuses a message of more than 1 MiB, and bytes that are no message', async () => {
    await start();
    await assert.rejects(call(rateLimit, Buffer.alloc(1_048_577)), { code: 8 });
    await assert.rejects(call(rateLimit, hex('0aff')), { code: 13 });
    assert.equal((await call(rateLimit, hex('0a0164'))).toString('hex'), '0801');
  });

  it('answers INTERNAL without the reason when the limiter fails, and logs the reason', async () => {
    for (const fail of [() => Promise.reject(new Error('secret')), () => assert.fail('secret')]) {
      await start({ shouldRateLimit: fail });
      await assert.rejects(call(rateLimit, hex('0a0164')), refusal(13, 'the rate-limit service could not decide'));
      assert.match(String((logged[0] as { err: Error }).err), /secret/);
      client.close();
      await server.close();
    }
  });

  it('answers UNAVAILABLE while hits cannot be counted, and logs nothing: the counters do', async () => {
    await start({ shouldRateLimit: () => Promise.reject(new CountersUnavailable('away')) });
    await assert.rejects(call(rateLimit, hex('0a0164')), refusal(14, 'hits cannot be counted now'));
    assert.deepEqual(logged, []);
  });

  it('answers health checks for itself and each service', async () => {
    await start();
    const check = async (service: string, expected: string) => {
      const name = Buffer.from(service);
      const message = service === '' ? name : Buffer.concat([Buffer.from([0x0a, name.length]), name]);
      assert.equal((await call('/grpc.health.v1.Health/Check', message)).toString('hex'), expected);
    };
    const services = ['', 'envoy.service.ratelimit.v3.RateLimitService', 'pb.lyft.ratelimit.RateLimitService'];
    for (const service of services) await check(service, '0801');
    server.setServing(false);
    for (const service of services) await check(service, '0802');
    server.setServing(true);
    await check('', '0801');
  });

  it('sends each change of its health once to a watch', async () => {
    await start();
    const watch = client.makeServerStreamRequest('/grpc.health.v1.Health/Watch', identity, identity, Buffer.alloc(0));
    watch.on('error', () => {});
    const heard: string[] = [];
    watch.on('data', (status: Buffer) => heard.push(status.toString('hex')));
    await once(watch, 'data');
    server.setServing(true);
    server.setServing(false);
    server.setServing(false);
    server.setServing(true);
    while (heard.length < 3) await once(watch, 'data');
    watch.cancel();
    assert.deepEqual(heard, ['0801', '0802', '0801']);
  });

  it('does not know the health of other services, and lists that of its own', async () => {
    await start();
    const stranger = Buffer.concat([hex('0a01'), Buffer.from('x')]);
    await assert.rejects(call('/grpc.health.v1.Health/Check', stranger), refusal(5, 'there is no service "x" here'));
    const watch = client.makeServerStreamRequest('/grpc.health.v1.Health/Watch', identity, identity, stranger);
    watch.on('error', () => {});
    const heard: string[] = [];
    watch.on('data', (status: Buffer) => heard.push(status.toString('hex')));
    await once(watch, 'data');
    server.setServing(false);
    const list = (await call('/grpc.health.v1.Health/List', Buffer.alloc(0))).toString('latin1');
    watch.cancel();
    for (const name of ['envoy.service.ratelimit.v3.RateLimitService', 'pb.lyft.ratelimit.RateLimitService'])
      assert.ok(list.includes(name), list);
    assert.deepEqual(heard, ['0803']);
  });

  it('ends watches with NOT_SERVING when it stops, and does not wait for them', async () => {
    await start();
    const watch = client.makeServerStreamRequest('/grpc.health.v1.Health/Watch', identity, identity, Buffer.alloc(0));
    const heard: string[] = [];
    watch.on('data', (status: Buffer) => heard.push(status.toString('hex')));
    await once(watch, 'data');
    const ended = once(watch, 'status');
    // Much longer than the test's own deadline.
    await server.close(600_000);
    const [{ code }] = await ended;
    assert.deepEqual([heard, code], [['0801', '0802'], 0]);
  });

  it('lists its services and describes them, in both versions of reflection', async () => {
    await start();
    for (const version of ['v1', 'v1alpha']) {
      const list = (await reflect(version, Buffer.concat([hex('3a01'), Buffer.from('*')]))).toString('latin1');
      for (const service of [
        'envoy.service.ratelimit.v3.RateLimitService',
        'pb.lyft.ratelimit.RateLimitService',
        'grpc.health.v1.Health',
        'grpc.reflection.v1.ServerReflection',
        'grpc.reflection.v1alpha.ServerReflection',
      ])
        assert.ok(list.includes(service), `${version} lists ${service}`);
      const symbol = Buffer.from('pb.lyft.ratelimit.RateLimitService');
      const file = await reflect(version, Buffer.concat([Buffer.from([0x22, symbol.length]), symbol]));
      assert.match(file.toString('latin1'), /ShouldRateLimit/);
    }
  });

  it('rejects with the code and a remedy when its port is taken', async () => {
    await start();
    const taken = serveRateLimit({ limiter: createLimiter({ limits }), port: server.port, logger: { error() {} } });
    await assert.rejects(taken, {
      code: 'EADDRINUSE',
      message: `The rate-limit server cannot listen on 127.0.0.1:${server.port} (EADDRINUSE): another process has the port; stop it or choose another port (0 picks a free one).`,
    });
  });

  it('rejects when its host is not an address of this machine', async () => {
    await start();
    const foreign = serveRateLimit({
      limiter: createLimiter({ limits }),
      host: '192.0.2.1',
      port: 0,
      logger: { error() {} },
    });
    await assert.rejects(foreign, { code: 'EADDRNOTAVAIL' });
  });

  it('lets a running call finish while it closes, then releases its port', async () => {
    let answer = () => {};
    let asked = () => {};
    const running = new Promise<void>((resolve) => {
      asked = resolve;
    });
    await start({
      shouldRateLimit: () =>
        new Promise((resolve) => {
          answer = () => resolve({ overallCode: 'OK', statuses: [] });
          asked();
        }),
    });
    const pending = call(rateLimit, hex('0a0164'));
    await running;
    const closed = server.close();
    answer();
    assert.equal((await pending).toString('hex'), '0801');
    await closed;
    const next = createServer().listen(server.port, '127.0.0.1');
    await once(next, 'listening');
    next.close();
  });

  it('ends at the deadline a call that does not finish', async () => {
    let asked = () => {};
    const running = new Promise<void>((resolve) => {
      asked = resolve;
    });
    await start({
      shouldRateLimit() {
        asked();
        return new Promise(() => {});
      },
    });
    const pending = assert.rejects(call(rateLimit, hex('0a0164')), { code: 14 });
    await running;
    await server.close(20);
    await pending;
  });

  it('does not wait for connections that never spoke', async () => {
    await start();
    const silent = connect(server.port, '127.0.0.1');
    await once(silent, 'connect');
    const gone = once(silent.resume(), 'close');
    // The server has accepted it when it has answered a later one.
    await call(rateLimit, hex('0a0164'));
    client.close();
    // Much longer than the test's own deadline.
    await server.close(600_000);
    await gone;
  });

  it('refuses more than 100 watches of its health at once', async () => {
    await start();
    const watch = () =>
      client
        .makeServerStreamRequest('/grpc.health.v1.Health/Watch', identity, identity, Buffer.alloc(0))
        .on('error', () => {});
    const watches = Array.from({ length: 100 }, watch);
    await Promise.all(watches.map((one) => once(one, 'data')));
    await assert.rejects(once(watch(), 'data'), { code: 8 });
    for (const one of watches) one.cancel();
  });

  it('may be closed twice', async () => {
    await start();
    await Promise.all([server.close(), server.close()]);
  });

  it('survives a client that does not speak HTTP/2', async () => {
    await start();
    const rude = connect(server.port, '127.0.0.1', () => rude.end('GET / HTTP/1.1\r\n\r\n'));
    rude.on('error', () => {}).resume();
    await once(rude, 'close');
    assert.equal((await call(rateLimit, hex('0a0164'))).toString('hex'), '0801');
  });

  it('keeps two servers in one process apart', async () => {
    await start();
    const other = await serveRateLimit({ limiter: createLimiter({ limits }), port: 0, logger: { error() {} } });
    assert.notEqual(other.port, server.port);
    await other.close();
    assert.equal((await call(rateLimit, hex('0a0164'))).toString('hex'), '0801');
  });
});
