/** Misbehaving services: each failure that a socket allows is handled as the table says, and leaks nothing. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer as createTlsServer } from 'node:https';
import { connect, type Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { AuthCheck } from '#auth';
import { mappingDefaults, type RetryPolicy } from '#config';
import { type ProblemKind, problems } from '#http';
import { createClusters } from '#proxy';
import { createTraffic, type Traffic } from '../../src/gateway/traffic/traffic.ts';
import { failures } from '../../src/proxy/failures.ts';
import { breakersOf } from '../support/clusters.ts';
import { authRecordOf, type EdgeOptions, startEdge } from '../support/edge.ts';
import { type Served, testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { createDeferred, eventually } from '../support/waiting.ts';
import { makeCertificate } from '../support/wire/certificate.ts';
import { bodyOf, rawRequest, sendRaw } from '../support/wire/raw-client.ts';

const ok = 'HTTP/1.1 200 OK\r\n';
const earlyHints = 'HTTP/1.1 103 Early Hints\r\n\r\n';

/** Misbehaviour before a response, and the error code that is logged. A string is sent, and the connection closed. */
const beforeResponse: readonly [code: string, how: string, misbehave: string | ((socket: Socket) => void)][] = [
  ['UND_ERR_SOCKET', 'closes the connection', ''],
  ['UND_ERR_SOCKET', 'closes the connection within the headers', `${ok}X-A: b\r\n`],
  ['ECONNRESET', 'resets the connection', (socket) => socket.resetAndDestroy()],
  ['ETIMEDOUT', 'sends nothing', () => {}],
  ['ETIMEDOUT', 'sends one byte at a time', (socket) => trickle(socket, `${ok}X-A: ${'a'.repeat(100)}`)],
  ['HPE_', 'does not speak HTTP', '220 mail.example ESMTP\r\n'],
  ['HPE_', 'sends no status', 'HTTP/1.1 OK\r\n\r\n'],
  ['ERR_ASSERTION', 'sends a status below 100', 'HTTP/1.1 099 A\r\nContent-Length: 0\r\n\r\n'],
  ['HPE_', 'sends a NUL in a header', `${ok}X-A: a\0b\r\nContent-Length: 0\r\n\r\n`],
  ['HPE_', 'sends a space in a name', `${ok}X A: b\r\nContent-Length: 0\r\n\r\n`],
  ['HPE_', 'folds a header', `${ok}X-A: b\r\n c: d\r\nContent-Length: 0\r\n\r\n`],
  ['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'sends two lengths', `${ok}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`],
  [
    'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
    'sends a length and chunks',
    `${ok}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n`,
  ],
  [
    'HPE_TRANSFER_CODING',
    'compresses its chunks',
    `${ok}X-Inner: secret\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1\r\na\r\n0\r\n\r\n`,
  ],
  ['UND_ERR_HEADERS_OVERFLOW', 'sends a huge header', (socket) => socket.write(`${ok}X-A: ${'a'.repeat(20_000)}\r\n`)],
  ['UND_ERR_HEADERS_OVERFLOW', 'sends many headers', (socket) => socket.write(`${ok}${'X-A: a\r\n'.repeat(5000)}`)],
  ['HPE_INTERIM_RESPONSES', 'sends too many early hints', (socket) => socket.write(earlyHints.repeat(101))],
  ['HPE_INTERIM_RESPONSES', 'sends 100 Continue too often', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(101)],
  [
    'UND_ERR_SOCKET',
    'switches protocols',
    (socket) => socket.write('HTTP/1.1 101 S\r\nUpgrade: odd\r\nConnection: upgrade\r\n\r\n'),
  ],
];

const inBody: readonly [how: string, misbehave: string | ((socket: Socket) => void), status?: number][] = [
  ['ends too early', `${ok}Content-Length: 100\r\n\r\nhello`],
  ['ends within its chunks', `${ok}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`],
  ['has an invalid chunk', `${ok}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n`],
  [
    'is reset',
    (socket) =>
      socket.write(`${ok}Content-Length: 100\r\n\r\nhello`, () => setImmediate(() => socket.resetAndDestroy())),
  ],
  ['stalls', (socket) => socket.write(`${ok}Content-Length: 100\r\n\r\nhello`), 504],
];

function trickle(socket: Socket, text: string): void {
  let sent = 0;
  const timer = setInterval(() => void socket.write(text.charAt(sent++)), 5);
  socket.once('close', () => clearInterval(timer));
}

describe('a misbehaving service', () => {
  const servers = testServers();
  const writeFiles = temporaryFiles();

  async function startMisbehaving(misbehave: string | ((socket: Socket) => void)) {
    const opened = new Set<Socket>();
    const requested = new Set<Socket>();
    const upstream = await servers.tcp((socket) => {
      opened.add(socket);
      socket.once('close', () => opened.delete(socket) && requested.delete(socket));
      socket.once('data', () => {
        requested.add(socket);
        typeof misbehave === 'string' ? socket.end(misbehave) : misbehave(socket);
      });
    });
    return { upstream, opened, requested };
  }

  /** No time-out that a busy machine could reach, unless a test is about one. */
  const patient = { timeoutMs: 30_000, idleTimeoutMs: 30_000 };
  const startEdgeTo = (upstream: Served, more: EdgeOptions = {}) =>
    startEdge(servers, { upstream, mapping: patient, ...more });

  /** Returns the response to the client, and the logged error with its code. */
  async function send(edge: Awaited<ReturnType<typeof startEdge>>, request = rawRequest('GET /v1/hotels')) {
    const response = await sendRaw(edge.port, request);
    const found = edge.log.at(-1)?.fields['err'] as (Error & { code?: string }) | undefined;
    const cause = (found?.cause ?? found) as (Error & { code?: string }) | undefined;
    return { response, found, code: cause?.code ?? (cause?.name === 'HTTPParserError' ? 'HPE_' : undefined) };
  }

  /** The failed calls that the mapping has counted, of any kind. */
  function failuresIn(traffic: Traffic): number {
    const { failed = 0, timeout = 0, unavailable = 0, overloaded = 0 } = traffic.of('hotel')?.upstream ?? {};
    return failed + timeout + unavailable + overloaded;
  }

  function checkProblem(response: string, code: string, found?: Error): void {
    const failure = failures[code] ?? failures[code.replace(/_(?!SSL)[A-Z_]*$/, '_')];
    assert.ok(failure !== undefined, `${code} is not in the table`);
    if (failure.remedy !== undefined) assert.ok(found?.message.endsWith(failure.remedy));
    const { status, retryAfterSeconds }: ProblemKind = problems[failure.slug];
    assert.match(response, new RegExp(`^HTTP/1\\.1 ${status} `));
    assert.equal(
      /^retry-after: (\d+)/im.exec(response)?.[1],
      (failure.retryAfterSeconds ?? retryAfterSeconds)?.toString(),
    );
    assert.doesNotMatch(response, /secret/);
    assert.deepEqual(Object.keys(JSON.parse(bodyOf(response))), ['code', 'message']);
  }

  before(() => import('undici'));

  for (const [code, how, misbehave] of beforeResponse) {
    it(`causes ${code} when it ${how}`, async () => {
      const { upstream, requested } = await startMisbehaving(misbehave);
      const traffic = createTraffic();
      const edge = await startEdgeTo(upstream, { traffic, mapping: { timeoutMs: code === 'ETIMEDOUT' ? 50 : 30_000 } });
      const failed = await send(edge);
      assert.equal(failed.code, code);
      checkProblem(failed.response, code, failed.found);
      assert.deepEqual(
        edge.log.map(({ level }) => level),
        ['warn'],
      );
      assert.deepEqual(edge.errors, []);
      assert.equal(failuresIn(traffic), 1);
      await eventually(() => assert.equal(requested.size, 0));
    });
  }

  it('stays in use if a client provoked its failures', async () => {
    let requests = 0;
    const origins = await Promise.all(
      [0, 1].map(async () => {
        const served = await servers.http((req, res) => {
          requests += 1;
          if (req.method === 'GET') res.setHeader('X-Echo', (req.url ?? '').repeat(3)).end();
          else req.socket.resetAndDestroy();
        });
        return served.origin;
      }),
    );
    const targets = { hotel: { kind: 'remote', origins: () => origins, path: '' } as const };
    const clusters = createClusters();
    const edge = await startEdge(servers, { targets, clusters });
    const send = (request: string) => sendRaw(edge.port, request);
    for (let round = 0; round < 12; round += 1) {
      assert.match(await send(rawRequest(`GET /v1/hotels?q=${'a'.repeat(7000)}`)), /^HTTP\/1\.1 502 /);
      assert.match(await send(rawRequest('POST /v1/hotels', ['Content-Length: 5'], 'hello')), /^HTTP\/1\.1 502 /);
    }
    assert.equal(requests, 24);
    for (const { health } of clusters.snapshot()[0]?.addresses ?? []) assert.equal(health, 'unknown');
  });

  for (const [how, misbehave, status = 502] of inBody) {
    it(`breaks the client's connection and is logged and counted as ${status} when its body ${how}`, async () => {
      const { upstream, requested } = await startMisbehaving(misbehave);
      const traffic = createTraffic();
      const mapping = status === 504 ? { ...patient, idleTimeoutMs: 50 } : patient;
      const edge = await startEdgeTo(upstream, { traffic, mapping });
      const { response } = await send(edge);
      assert.match(response, /^HTTP\/1\.1 200 OK\r\n/);
      assert.doesNotMatch(response, /0\r\n\r\n$|"code"/);
      assert.ok(edge.errors.length > 0, 'the app gets the error');
      const slug = status === 504 ? 'upstream-timeout' : 'upstream-failed';
      assert.deepEqual(
        edge.log.map(({ level, fields }) => [level, fields['problem']]),
        [['warn', slug]],
      );
      await eventually(() =>
        assert.deepEqual(
          traffic.failures().map((one) => [one.status, one.problem]),
          [[status, slug]],
        ),
      );
      assert.equal(failuresIn(traffic), 1);
      await eventually(() => assert.equal(requested.size, 0));
    });
  }

  for (const [how, misbehave] of inBody)
    it(`is ejected when the body of each of its responses ${how}, although their status is 200`, async () => {
      const { upstream } = await startMisbehaving(misbehave);
      const good = await Promise.all([0, 1].map(() => servers.http((_req, res) => void res.end('good'))));
      const origins = [upstream.origin, ...good.map(({ origin }) => origin)];
      const targets = { hotel: { kind: 'remote', origins: () => origins, path: '' } as const };
      const clusters = createClusters();
      const edge = await startEdge(servers, { targets, clusters, mapping: { timeoutMs: 5000, idleTimeoutMs: 50 } });
      let broken = 0;
      for (let request = 0; request < 24; request += 1)
        if (!(await sendRaw(edge.port, rawRequest('GET /v1/hotels'))).endsWith('good')) broken += 1;
      assert.equal(broken, mappingDefaults.outlierDetection.consecutive5xx);
      assert.deepEqual(
        clusters
          .snapshot()[0]
          ?.addresses.filter(({ health }) => health === 'ejected')
          .map(({ origin }) => origin),
        [upstream.origin],
      );
    });

  for (const [how, leave] of Object.entries({
    'close their connections': (client: Socket) => client.destroy(),
    'reset their connections': (client: Socket) => client.resetAndDestroy(),
  }))
    it(`stays in use when clients ${how} during its responses`, async () => {
      const upstreams = await Promise.all(
        [0, 1].map(() => servers.http((_req, res) => void res.end(Buffer.alloc(32 * 1024 * 1024)))),
      );
      const origins = upstreams.map(({ origin }) => origin);
      const targets = { hotel: { kind: 'remote', origins: () => origins, path: '' } as const };
      const [clusters, traffic] = [createClusters(), createTraffic()];
      const edge = await startEdge(servers, { targets, clusters, traffic });
      for (let request = 1; request <= 14; request += 1) {
        const client = connect(edge.port, '127.0.0.1');
        client.write(rawRequest('GET /v1/hotels'));
        await once(client, 'data');
        leave(client);
        await eventually(() => assert.equal(traffic.of('hotel')?.totals?.abandoned, request));
      }
      for (const { health } of clusters.snapshot()[0]?.addresses ?? []) assert.equal(health, 'unknown');
    });

  it('is not blamed when the client does not read its response', async () => {
    const upstream = await servers.http((_req, res) => void res.end(Buffer.alloc(32 * 1024 * 1024)));
    const traffic = createTraffic();
    // On a busy machine, a shorter pause may be one of the service.
    const edge = await startEdgeTo(upstream, { traffic, mapping: { idleTimeoutMs: 1000 } });
    const client = connect(edge.port, '127.0.0.1').pause();
    client.write('GET /v1/hotels HTTP/1.1\r\nHost: front.example\r\n\r\n');
    await eventually(() => assert.equal(traffic.of('hotel')?.totals?.abandoned, 1));
    assert.deepEqual([edge.log, failuresIn(traffic), traffic.failures()], [[], 0, []]);
    client.destroy();
  });

  it('is said to respond again once it responds, not when a client leaves or the auth service denies', async () => {
    let [nowMs, outcome] = [0, 'allow'];
    const [arrived, closed] = [createDeferred(), createDeferred()];
    const upstream = await servers.http((req, res) => {
      if (req.url === '/hangs') {
        res.once('close', closed.resolve);
        arrived.resolve();
      } else if (nowMs === 0) req.socket.destroy();
      else res.end();
    });
    const authPort: AuthCheck = () =>
      outcome === 'allow'
        ? { outcome, headers: {} }
        : { outcome: 'deny', status: 403, headers: {}, body: Buffer.from('no') };
    const edge = await startEdgeTo(upstream, { authService: authRecordOf(), authPort, outageClock: () => nowMs });
    const lines = () => edge.log.map(({ message }) => message);
    assert.match((await send(edge)).response, / 502 /);
    assert.equal(lines().length, 1);
    nowMs = 60_000;
    outcome = 'deny';
    assert.match((await send(edge)).response, / 403 /);
    outcome = 'allow';
    const client = connect(edge.port, '127.0.0.1');
    client.write('GET /v1/hotels/hangs HTTP/1.1\r\nHost: front.example\r\n\r\n');
    await arrived.promise;
    client.destroy();
    await closed.promise;
    assert.equal(lines().length, 1);
    assert.match((await send(edge)).response, / 200 /);
    assert.deepEqual(lines().slice(1), ['hotel:80 is responding again']);
  });

  it('is unavailable if it refuses connections or its host is unknown', async () => {
    const refusing = await send(await startEdgeTo(await servers.refusing()));
    assert.equal(refusing.code, 'ECONNREFUSED');
    checkProblem(refusing.response, 'ECONNREFUSED');
    const nowhere = await startEdgeTo({ origin: 'http://no-such-host.invalid', port: 80 }, { mapping: {} });
    const { response, code = '' } = await send(nowhere);
    assert.match(code, /^(?:ENOTFOUND|EAI_AGAIN)$/);
    checkProblem(response, code);
  });

  it('is overloaded if it has too many requests', async () => {
    const { upstream, opened } = await startMisbehaving(() => {});
    const circuitBreakers = breakersOf({ maxConnections: 1, maxPendingRequests: 0, maxRequests: 1, maxRetries: 0 });
    const clusters = createClusters();
    const edge = await startEdgeTo(upstream, { clusters, mapping: { timeoutMs: 0, circuitBreakers } });
    const first = send(edge);
    await eventually(() => assert.equal(clusters.snapshot()[0]?.activeRequests, 1));
    const { response, code, found } = await send(edge);
    assert.equal(code, 'OVERFLOW');
    checkProblem(response, 'OVERFLOW', found);
    for (const socket of opened) socket.destroy();
    await first;
  });

  it('has its TLS failures logged with a remedy', async function () {
    const certificate = await makeCertificate(await writeFiles(), 'DNS:hotel');
    if (certificate === undefined) this.skip();
    const selfSigned = createTlsServer(certificate, (_req, res) => res.end('secret'));
    const { port } = await servers.listen(selfSigned);
    const { upstream: plain } = await startMisbehaving((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    const { upstream: mute } = await startMisbehaving(() => {});
    for (const [to, expected, remedy] of [
      [port, 'DEPTH_ZERO_SELF_SIGNED_CERT', /NODE_EXTRA_CA_CERTS/],
      [plain.port, 'ERR_SSL_WRONG_VERSION_NUMBER', /speaks TLS/],
      [mute.port, 'UND_ERR_CONNECT_TIMEOUT', /./],
    ] as const) {
      const upstream = { origin: `https://127.0.0.1:${to}`, port: to };
      const edge = await startEdgeTo(upstream, { mapping: { timeoutMs: 5000, connectTimeoutMs: 50 } });
      const { response, code, found } = await send(edge);
      assert.equal(code, expected);
      assert.match(String(found?.message), remedy);
      checkProblem(response, expected, found);
    }
  });

  it('causes no leaks and no warnings over a hundred requests', async () => {
    const complaints: unknown[] = [];
    const complain = (complaint: unknown) => void complaints.push(complaint);
    for (const event of ['unhandledRejection', 'warning'] as const) process.on(event, complain);
    let turn = 0;
    const quick = beforeResponse.filter(([code]) => code !== 'ETIMEDOUT').map(([, , misbehave]) => misbehave);
    const ways = [...quick, ...inBody.slice(0, -1).map(([, misbehave]) => misbehave)];
    const { upstream, opened } = await startMisbehaving((socket) => {
      const misbehave = ways[turn++ % ways.length] ?? '';
      typeof misbehave === 'string' ? socket.end(misbehave) : misbehave(socket);
    });
    const retryPolicy: RetryPolicy = { retryOn: ['5xx'], numRetries: 1, perTryTimeoutMs: undefined, statusCodes: [] };
    const outlierDetection = { consecutive5xx: 0, baseEjectionTimeMs: 0, maxEjectionPercent: 0 };
    const mapping = { timeoutMs: 1000, retryPolicy, outlierDetection };
    const clusters = createClusters();
    const edge = await startEdgeTo(upstream, { clusters, mapping });
    const body = 'x'.repeat(30_000);
    const post = rawRequest('POST /v1/hotels', [`Content-Length: ${body.length}`], body);
    const storm = async (rounds: number) => {
      for (let round = 0; round < rounds; round += 1)
        await Promise.all(
          Array.from({ length: 20 }, (_, index) =>
            sendRaw(edge.port, index % 3 === 0 ? post : rawRequest('GET /v1/hotels')),
          ),
        );
    };
    await storm(4);
    (edge.log as unknown[]).length = 0;
    const heapBefore = heapUsed();
    await storm(5);
    const [cluster] = clusters.snapshot();
    assert.deepEqual([cluster?.activeRequests, cluster?.activeRetries], [0, 0]);
    await clusters.close();
    await eventually(() => assert.equal(opened.size, 0));
    for (const event of ['unhandledRejection', 'warning'] as const) process.off(event, complain);
    assert.deepEqual(complaints, []);
    (edge.log as unknown[]).length = 0;
    (edge.errors as unknown[]).length = 0;
    const grownBytes = heapUsed() - heapBefore;
    assert.ok(grownBytes < 2e6, `the heap has grown by ${grownBytes} bytes`);
  });
});

function heapUsed(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().heapUsed;
}
