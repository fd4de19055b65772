/** What a client and a service get of each other when they switch protocols through the gateway. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import type { Mapping } from '#config';
import { createUpgrades, serveHttp } from '#http';
import { createClusters } from '#proxy';
import {
  authRecordOf,
  type EdgeOptions,
  labelled,
  limitRecordOf,
  mappingOf,
  remote,
  startEdge,
} from '../support/edge.ts';
import { type Served, testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';
import { httpLimits } from '../support/wire/http-limits.ts';
import { askToSwitch, speak } from '../support/wire/peer.ts';
import { rawRequest } from '../support/wire/raw-client.ts';
import { bytesOf, startSwitchingUpstream, switching } from '../support/wire/switching-upstream.ts';

const path = '/v1/hotels/chat?room=1';
const handshake = ['Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', 'Sec-WebSocket-Version: 13'];

describe('a connection that switches protocols', () => {
  const servers = testServers();

  async function setUp(
    answer?: (socket: Socket) => void,
    mapping: Partial<Mapping> = {},
    options: EdgeOptions & { readonly upstream?: Served; readonly auth?: Served } = {},
  ) {
    const upstream = await startSwitchingUpstream(servers, answer);
    const clusters = createClusters();
    const { upstream: elsewhere = upstream, auth, ...rest } = options;
    const edge = await startEdge(servers, {
      mappings: [mappingOf({ allowUpgrade: ['websocket'], ...mapping })],
      targets: { hotel: remote(elsewhere), ...(auth && { auth: remote(auth) }) },
      clusters,
      ...rest,
    });
    const upgrades = createUpgrades((protocol) => protocol === 'websocket');
    const front = await serveHttp({ ...httpLimits, handler: edge.listener, upgrades });
    servers.later(() => Promise.all([front.close(0), upgrades.close(0), clusters.close()]));
    const open = (headers: readonly string[] = handshake, more = '') =>
      speak(front.port, askToSwitch(path, headers) + more);
    const active = () => clusters.snapshot()[0]?.activeRequests;
    return { upstream, edge, port: front.port, open, active };
  }

  /** Both sides, switched. */
  async function joined(mapping: Partial<Mapping> = {}) {
    const { upstream, open, active } = await setUp(undefined, mapping);
    const asked = upstream.next();
    const client = open();
    const { peer: service } = await asked;
    await client.until('\r\n\r\n');
    return { client, service, upstream, active };
  }

  it('is asked of the service as any request is: rewritten, with the headers that may cross', async () => {
    const { upstream, open } = await setUp();
    const odd = ['Cookie: a=1', 'Keep-Alive: 5', 'TE: trailers', 'X-Forwarded-For: 1.2.3.4'];
    const client = open([...handshake, ...odd, 'Sec-WebSocket-Protocol: chat']);
    await client.until('\r\n\r\n');
    const asked = upstream.asked[0];
    assert.equal(asked?.url, '/chat?room=1');
    const { 'x-request-id': requestId, traceparent, ...told } = asked.headers;
    assert.match(String(traceparent), /^00-[\da-f]{32}-[\da-f]{16}-00$/);
    assert.match(String(requestId), /^[\w-]{36}$/);
    assert.deepEqual(told, {
      host: `127.0.0.1:${upstream.port}`,
      connection: 'upgrade',
      upgrade: 'websocket',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
      'sec-websocket-version': '13',
      'sec-websocket-protocol': 'chat',
      cookie: 'a=1',
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'http',
      'x-forwarded-host': 'front.example',
      'x-forwarded-prefix': '/v1/hotels',
      via: told['via'],
    });
    client.socket.destroy();
  });

  it('is told to the client with the headers of the service, but for those of its connection', async () => {
    const { open } = await setUp(undefined, {
      responseHeaders: { add: [{ name: 'x-added', value: 'ours', append: false }], remove: [] },
    });
    const client = open();
    await client.until('\r\n\r\n');
    const lines = client.received().split('\r\n');
    assert.equal(lines[0], 'HTTP/1.1 101 Switching Protocols');
    assert.deepEqual(
      lines.filter((line) => /^(?:connection|upgrade|sec-|keep-alive|x-added|content-|transfer-)/i.test(line)).sort(),
      ['Connection: Upgrade', 'Sec-WebSocket-Accept: digest', 'Upgrade: websocket', 'x-added: ours'],
    );
    client.socket.destroy();
  });

  it('carries everything both ways, as fast as the slower side reads', async () => {
    const { client, service } = await joined();
    for (const { socket } of [client, service]) socket.allowHalfOpen = true;
    for (const [from, to] of [
      [client.socket, service.socket],
      [service.socket, client.socket],
    ] as const) {
      const [sent, came] = [createHash('sha256'), createHash('sha256')];
      to.removeAllListeners('data');
      to.on('data', (chunk: Buffer) => {
        came.update(chunk);
        to.pause();
        setImmediate(() => to.resume());
      });
      const all = once(to, 'end');
      await pipeline(async function* () {
        for (let index = 0; index < 128; index += 1) {
          const chunk = Buffer.alloc(65_536, index);
          sent.update(chunk);
          yield chunk;
        }
      }, from);
      await all;
      assert.equal(came.digest('hex'), sent.digest('hex'));
    }
    await Promise.all([client.closed, service.closed]);
  });

  it('carries what the client sends early only once the service has switched', async () => {
    const { upstream, open } = await setUp(() => {});
    const asked = upstream.next();
    const client = open(handshake, 'early');
    const { peer } = await asked;
    client.socket.write(' and more');
    const others = [open(), open()];
    while (upstream.asked.length < 3) await upstream.next();
    assert.equal(peer.received(), '');
    peer.socket.write(bytesOf(switching));
    await peer.until('early and more');
    for (const one of [client, ...others]) one.socket.destroy();
  });

  it('carries what the service sends together with its 101', async () => {
    const { open } = await setUp((socket) => void socket.write(`${bytesOf(switching)}welcome`));
    const client = open();
    await client.until('\r\n\r\nwelcome');
    client.socket.destroy();
  });

  it('lets either side end and still be answered', async () => {
    const first = await joined();
    first.service.socket.allowHalfOpen = true;
    first.service.socket.once('end', () => first.service.socket.end('heard all'));
    first.client.socket.end('question');
    assert.match(await first.client.closed, /heard all$/);
    assert.equal(await first.service.closed, 'question');

    const second = await joined();
    second.client.socket.allowHalfOpen = true;
    second.client.socket.once('end', () => second.client.socket.end('heard all'));
    second.service.socket.end('question');
    assert.equal(await second.service.closed, 'heard all');
  });

  for (const side of ['client', 'service'] as const)
    it(`ends for both when the ${side} breaks off, and is given back`, async () => {
      const { active, upstream, ...sides } = await joined();
      assert.equal(active(), 1);
      sides[side].socket.resetAndDestroy();
      await Promise.all([sides.client.closed, sides.service.closed]);
      await until(() => active() === 0 && upstream.connections() === 0);
    });

  it('ends when it rests for longer than the mapping lets it', async () => {
    const { client, service } = await joined({ idleTimeoutMs: 30 });
    await Promise.all([client.closed, service.closed]);
  });

  it('counts as a request under way until its end', async () => {
    const { upstream, open } = await setUp(undefined, {
      circuitBreakers: { maxConnections: 9, maxPendingRequests: 9, maxRequests: 1, maxRetries: 1 },
    });
    const client = open();
    await client.until('HTTP/1.1 101 ');
    assert.match(await open().closed, /^HTTP\/1\.1 503 /);
    client.socket.destroy();
    await until(() => upstream.connections() === 0);
    const next = open();
    await next.until('HTTP/1.1 101 ');
    next.socket.destroy();
  });

  it('leaves nothing behind, however many there are', async () => {
    const { upstream, open, active } = await setUp((socket) => {
      socket.write(bytesOf(switching));
      socket.pipe(socket);
    });
    const clients = Array.from({ length: 100 }, (_, index) => ({ index, ...open(handshake, `I am ${index}.`) }));
    await Promise.all(clients.map(({ until: come, index }) => come(`I am ${index}.`)));
    assert.equal(active(), 100);
    for (const { socket, index } of clients) index % 2 === 0 ? socket.end() : socket.destroy();
    await Promise.all(clients.map(({ closed }) => closed));
    await until(() => active() === 0 && upstream.connections() === 0);
  });

  describe('is not switched', () => {
    function checkAnswer(what: string, lines: readonly string[], body: string, expected: RegExp) {
      it(`when the service answers ${what}: the client reads that, and no more is carried`, async () => {
        const { upstream, open } = await setUp((socket) => void socket.write(bytesOf(lines) + body));
        const asked = upstream.next();
        const client = open(handshake, 'GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n');
        const { peer } = await asked;
        const answer = await client.closed;
        assert.match(answer, expected);
        assert.match(answer, /^Connection: close\r$/m);
        assert.equal(answer.match(/HTTP\/1\.1 /g)?.length, 1);
        await peer.closed;
        assert.equal(peer.received(), '');
      });
    }

    const three = 'Content-Length: 3';
    checkAnswer(
      '403',
      ['HTTP/1.1 403 Forbidden', three, 'X-Why: x'],
      'no!',
      /^HTTP\/1\.1 403 [\s\S]*X-Why: x[\s\S]*no!$/,
    );
    checkAnswer('426', ['HTTP/1.1 426 Upgrade Required', three, 'Upgrade: chat'], 'no!', /^HTTP\/1\.1 426 [\s\S]*no!$/);
    checkAnswer('200', [...switching.toSpliced(0, 1, 'HTTP/1.1 200 OK'), three], 'yes', /^HTTP\/1\.1 200 [\s\S]*yes$/);

    function checkBroken(what: string, lines: readonly string[]) {
      it(`when the service ${what}: the client reads 502`, async () => {
        const { upstream, open, edge } = await setUp((socket) => void socket.write(`${bytesOf(lines)}raw`));
        const answer = await open().closed;
        assert.match(answer, /^HTTP\/1\.1 502 /);
        assert.doesNotMatch(answer, /raw/);
        await until(() => upstream.connections() === 0);
        assert.deepEqual(edge.errors, []);
      });
    }

    checkBroken('switches to nothing', switching.slice(0, 1));
    checkBroken('switches to something else', switching.toSpliced(2, 1, 'Upgrade: chat'));
    checkBroken('sends bytes that no header may hold', [...switching, 'X-Odd: a\x01b']);
    checkBroken('answers something that is not HTTP', ['220 smtp.example']);

    it('when the service refuses connections: the client reads 503', async () => {
      const { open, active } = await setUp(undefined, {}, { upstream: await servers.refusing() });
      assert.match(await open().closed, /^HTTP\/1\.1 503 [\s\S]*"code":503/);
      assert.equal(active(), 0);
    });

    it('when the service does not answer in time: the client reads 504', async () => {
      const { open, active } = await setUp(() => {}, { timeoutMs: 30 });
      assert.match(await open().closed, /^HTTP\/1\.1 504 /);
      await until(() => active() === 0);
    });

    it('when the client leaves before: the service is told at once', async () => {
      const { open, upstream, active } = await setUp(() => {});
      const asked = upstream.next();
      const client = open();
      const { peer } = await asked;
      client.socket.end();
      await peer.closed;
      await until(() => active() === 0);
    });

    function checkPlain(what: string, mapping: Partial<Mapping>, request = askToSwitch(path, handshake)) {
      it(`${what}: the request is an ordinary one`, async () => {
        const reached = await startUpstream(servers);
        const { port } = await setUp(undefined, mapping, { upstream: reached });
        const client = speak(port, request);
        await client.until('\r\nok');
        const { headers } = reached.only();
        assert.equal(headers.upgrade, undefined);
        assert.notEqual(headers.connection?.toLowerCase(), 'upgrade');
        client.socket.destroy();
      });
    }

    checkPlain('when its mapping does not allow it', { allowUpgrade: [] });
    checkPlain('when its mapping allows another protocol', { allowUpgrade: ['chat'] });
    checkPlain('when the header is not of this connection', {}, rawRequest(`GET ${path}`, ['Upgrade: websocket']));
    checkPlain('when it has a body', {}, `${askToSwitch(path, [...handshake, 'Content-Length: 3'])}abc`);
  });

  describe('is switched only for whom', () => {
    it('the auth service lets through, which hears of a plain request for the original path', async () => {
      const auth = await startUpstream(servers, (res, { headers }) => {
        res.statusCode = headers.authorization === undefined ? 401 : 200;
        if (res.statusCode === 200) res.setHeader('X-Travel-User', 'demo');
        else res.setHeader('WWW-Authenticate', 'Basic realm="x"');
        res.end(res.statusCode === 401 ? 'who are you?' : '');
      });
      const { upstream, open } = await setUp(undefined, {}, { authService: authRecordOf(), auth });
      const refused = await open().closed;
      assert.match(refused, /^HTTP\/1\.1 401 [\s\S]*WWW-Authenticate: Basic realm="x"[\s\S]*who are you\?$/i);
      assert.equal(upstream.asked.length, 0);
      const client = open([...handshake, 'Authorization: Basic x', 'X-Travel-User: mallory']);
      await client.until('HTTP/1.1 101 ');
      assert.equal(upstream.asked[0]?.headers['x-travel-user'], 'demo');
      const [, { url, headers } = { url: '', headers: {} as Record<string, string> }] = auth.reached;
      assert.equal(url, path);
      assert.equal(headers['authorization'], 'Basic x');
      assert.deepEqual(
        [headers['upgrade'], headers['sec-websocket-key'], headers['x-travel-user']],
        [undefined, undefined, undefined],
      );
      client.socket.destroy();
    });

    it('the limits leave something', async () => {
      const { open, upstream } = await setUp(
        undefined,
        { labels: { gateway: labelled('x-key') } },
        {
          rateLimitService: limitRecordOf(),
          limiter: { shouldRateLimit: () => ({ overallCode: 'OVER_LIMIT', statuses: [] }) },
        },
      );
      const answer = await open([...handshake, 'X-Key: a']).closed;
      assert.match(answer, /^HTTP\/1\.1 429 [\s\S]*Retry-After: 1[\s\S]*"code":429/);
      assert.equal(upstream.asked.length, 0);
    });

    it('there is a mapping for', async () => {
      const { port } = await setUp();
      assert.match(await speak(port, askToSwitch('/nothing')).closed, /^HTTP\/1\.1 404 [\s\S]*"code":404/);
      assert.match(await speak(port, askToSwitch('/v1/../x')).closed, /^HTTP\/1\.1 400 [\s\S]*"code":400/);
    });
  });
});

/** What has no event of its own to wait for. */
async function until(isSo: () => boolean): Promise<void> {
  for (let tries = 0; !isSo(); tries += 1) {
    assert.ok(tries < 1000, `not within ${tries} tries: ${isSo}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
