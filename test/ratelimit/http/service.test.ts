/** The HTTP interface of the rate-limit service. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import request, { type Test } from 'supertest';
import { CountersUnavailable, createLimiter } from '#ratelimit';
import { createRateLimitHttp, type RateLimitHttpOptions } from '#ratelimit/http';
import { domain, limit, node, unlimited } from '../../support/limits.ts';
import { type Served, testServers } from '../../support/serve.ts';
import { closeOf } from '../../support/waiting.ts';
import { createReadChunks, sendByteByByte } from '../../support/wire/byte-by-byte.ts';
import { rawRequest } from '../../support/wire/raw-client.ts';

const limits = [domain('d', node('k', limit(1, 'year')))];
const limitedRequest = { domain: 'd', descriptors: [{ entries: [{ key: 'k', value: 'v' }] }] };

describe('the rate-limit service over HTTP', () => {
  const servers = testServers();
  let served: Served;
  let logged: object[];

  async function start(options: Partial<RateLimitHttpOptions> = {}): Promise<void> {
    logged = [];
    const limiter = createLimiter({ limits });
    const logger = { error: (fields: object) => logged.push(fields) };
    const parts = { limiter, isReady: () => true, limits: () => limits, logger, ...options };
    served = await servers.http(createRateLimitHttp(parts));
  }

  function ask(body: string | object): Test {
    return request(served.origin)
      .post('/json')
      .type('json')
      .send(typeof body === 'string' ? body : JSON.stringify(body));
  }

  it('responds with 400 and the reason if a request is malformed or exceeds a bound', async () => {
    await start();
    for (const [body, detail] of [
      ['{', /^the body is not JSON: /],
      [{}, /^domain must not be empty$/],
      [{ domain: 'd', hits: 1 }, /^hits is not a known field/],
      [{ domain: 'd'.repeat(257) }, /^domain has 257 characters, more than the maximum of 256$/],
    ] as const) {
      const { body: error } = await ask(body).expect(400);
      assert.deepEqual([error.code, error.message], [400, '400: Bad Request']);
      assert.match(error.detail, detail);
    }
    assert.deepEqual(logged, []);
  });

  it('accepts what curl -d sends, and only that, besides application/json; and no requests from web pages', async () => {
    await start();
    const send = (headers: Record<string, string>) =>
      request(served.origin).post('/json').set(headers).send(JSON.stringify(limitedRequest));
    for (const type of ['text/plain', 'multipart/form-data', 'application/jsonp'])
      await send({ 'Content-Type': type }).expect(415).expect('Accept', 'application/json');
    for (const type of ['application/json', 'application/x-www-form-urlencoded']) {
      for (const origin of ['https://evil.example', 'null', served.origin])
        await send({ 'Content-Type': type, Origin: origin }).expect(403);
      await send({ 'Content-Type': type, 'Sec-Fetch-Site': 'cross-site' }).expect(403);
    }
    await send({ 'Content-Type': 'Application/JSON; charset=utf-8' }).expect(200);
    for (const type of ['application/json', 'application/x-www-form-urlencoded'])
      await send({ 'Content-Type': type }).expect(429);
  });

  it('rejects deep JSON and many keys before it parses them', async () => {
    await start();
    for (const [body, detail] of [
      [`{"domain":"d","descriptors":${'['.repeat(400_000)}${']'.repeat(400_000)}}`, /nested at most \d+ levels deep/],
      [`{"domain":"d",${'"x":1,'.repeat(100_000)}"y":1}`, /at most \d+ keys/],
    ] as const) {
      const { parse } = JSON;
      let parsed = 0;
      JSON.parse = (...args) => {
        if (args[0] === body) parsed += 1;
        return parse(...args);
      };
      try {
        assert.match((await ask(body).expect(400)).body.detail, detail);
      } finally {
        JSON.parse = parse;
      }
      assert.equal(parsed, 0);
    }
  });

  it('accepts a request with as many descriptors and entries as the bounds allow', async () => {
    await start();
    const entries = Array.from({ length: 32 }, () => ({ key: 'k', value: 'v' }));
    const one = {
      entries,
      hitsAddend: 1,
      isNegativeHits: false,
      limit: { requestsPerUnit: 9, unit: 'DAY', unitMultiplier: 2 },
    };
    await ask({ domain: 'd', descriptors: Array.from({ length: 64 }, () => one), hitsAddend: 1 }).expect(429);
  });

  it('accepts a body of 1 MiB and rejects a longer one with 413', async () => {
    await start();
    const body = JSON.stringify(limitedRequest);
    await ask(body.padEnd(1_048_576)).expect(200);
    const { body: error } = await ask(body.padEnd(1_048_577)).expect(413);
    assert.equal(error.detail, 'The body may have at most 1048576 bytes.');
  });

  it('retains few buffers of a body that arrives byte by byte', async () => {
    const chunks = createReadChunks();
    const handle = createRateLimitHttp({
      limiter: createLimiter({ limits }),
      isReady: () => true,
      limits: () => limits,
      logger: { error: assert.fail },
    });
    const { port } = await servers.http((req, res) => {
      chunks.watch(req);
      handle(req, res);
    });
    const body = JSON.stringify(limitedRequest).padEnd(300);
    const head = rawRequest('POST /json', ['Content-Type: application/json', 'Content-Length: 300']);
    const client = await sendByteByByte(port, head, body, chunks);
    assert.ok(chunks.kept() < 30, `${chunks.kept()} are kept`);
    client.write(' ');
    assert.match(String(await once(client, 'data')), /^HTTP\/1\.1 200 /);
    client.destroy();
  });

  it('closes a connection when there are more than 256 incomplete bodies', async () => {
    await start();
    const head = rawRequest('POST /json', ['Content-Type: application/json', 'Content-Length: 2']);
    const sockets = Array.from({ length: 257 }, () => connect(served.port, '127.0.0.1').resume());
    for (const socket of sockets) socket.on('error', () => {}).write(`${head}{`);
    await Promise.race(sockets.map(closeOf));
    await ask(limitedRequest).expect(200);
    for (const socket of sockets) socket.destroy();
    assert.deepEqual(logged, []);
  });

  it('responds with 500 when the limiter fails, and only logs the cause', async () => {
    for (const shouldRateLimit of [() => Promise.reject(new Error('secret')), () => assert.fail('secret')]) {
      await start({ limiter: { shouldRateLimit } });
      const { text } = await ask(limitedRequest).expect(500);
      assert.ok(!text.includes('secret'));
      assert.equal(logged.length, 1);
    }
    await start({ limiter: { shouldRateLimit: () => Promise.reject(new CountersUnavailable('away')) } });
    await ask(limitedRequest).expect(500);
    assert.deepEqual(logged, [], 'the counters log their outage');
  });

  it('does not log a client that disconnects while sending its request', async () => {
    await start();
    const socket = connect(served.port, '127.0.0.1');
    await once(socket, 'connect');
    socket.end('POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{');
    socket.resume();
    await once(socket, 'close');
    await ask(limitedRequest).expect(200);
    assert.deepEqual(logged, []);
  });

  it('responds with 405 and the allowed methods, and with 404 for other paths and disabled /metrics', async () => {
    await start();
    for (const path of ['/', '/json/', '/metrics', '/constructor', '/JSON'])
      await request(served.origin).get(path).expect(404, { code: 404, message: '404: Not Found' });
    await start({ metrics: async () => ({ contentType: 'text/plain', text: '' }) });
    for (const [path, method, allow] of [
      ['/json', 'get', 'POST'],
      ['/json', 'put', 'POST'],
      ['/healthcheck', 'post', 'GET, HEAD'],
      ['/rlconfig', 'delete', 'GET, HEAD'],
      ['/metrics', 'post', 'GET, HEAD'],
    ] as const)
      await request(served.origin)[method](path).expect(405).expect('Allow', allow);
  });

  it('reports itself healthy while it can decide', async () => {
    let ready = true;
    await start({ isReady: () => ready });
    await request(served.origin).get('/healthcheck').expect(200, 'OK');
    ready = false;
    await request(served.origin).get('/healthcheck').expect(500, 'not ready');
  });

  const special = limit(5, 'second', {
    unitMultiplier: 30,
    name: 'burst',
    replaces: ['a', 'b'],
    algorithm: 'token_bucket',
    burst: 9,
    shadowMode: true,
  });
  it('lists the current limits at /rlconfig, and sends only headers for HEAD', async () => {
    for (const [descriptor, ...lines] of [
      [node('k')],
      [
        node('a', limit(1), node('b=x', limit(2))),
        'd.a: unit=MINUTE requests_per_unit=1, shadow_mode: false, quota_mode: false',
        'd.a.b_…: unit=MINUTE requests_per_unit=2, shadow_mode: false, quota_mode: false',
      ],
      [node('k', unlimited), 'd.k: unlimited, shadow_mode: false, quota_mode: false'],
      [
        { ...node('k=*', [special, limit(7)]), shareThreshold: true },
        'd.k_…: unit=SECOND unit_multiplier=30 requests_per_unit=5, name: burst, replaces: a b, algorithm: token_bucket, burst: 9, shadow_mode: true, quota_mode: false, share_threshold: true',
        'd.k_…: unit=MINUTE requests_per_unit=7, shadow_mode: false, quota_mode: false, share_threshold: true',
      ],
      [
        node('generic_key=v\nd.x: unlimited', limit(1)),
        'd.generic_key_v d.x: unlimited: unit=MINUTE requests_per_unit=1, shadow_mode: false, quota_mode: false',
      ],
    ] as const) {
      await start({ limits: () => [domain('d', descriptor)] });
      const expected = lines.map((line) => `${line}\n`).join('');
      await request(served.origin).get('/rlconfig').expect(200, expected);
      const { headers, text } = await request(served.origin).head('/rlconfig').expect(200);
      assert.deepEqual([headers['content-length'], text], [String(Buffer.byteLength(expected)), undefined]);
    }
  });
});
