/** Protocol upgrades: the handshake, and the bytes that a client and a service exchange through the gateway. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import type { Mapping } from '#config';
import { createUpgrades } from '#http';
import { createClusters } from '#proxy';
import { breakersOf } from '../support/clusters.ts';
import { authRecordOf, type EdgeOptions, labelled, limitRecordOf, remote, startEdge } from '../support/edge.ts';
import { type Served, testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';
import { eventually } from '../support/waiting.ts';
import { startHttp } from '../support/wire/http-server.ts';
import { speak, upgradeRequest } from '../support/wire/peer.ts';
import { rawRequest } from '../support/wire/raw-client.ts';
import { bytesOf, startSwitchingUpstream, switching } from '../support/wire/switching-upstream.ts';

const path = '/v1/hotels/chat?room=1';
const handshake = ['Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', 'Sec-WebSocket-Version: 13'];

describe('a connection that switches protocols', () => {
  const servers = testServers();

  async function setUp(
    respond?: (socket: Socket) => void,
    mapping: Partial<Mapping> = {},
    options: EdgeOptions & { readonly auth?: Served } = {},
  ) {
    const upstream = await startSwitchingUpstream(servers, respond);
    const clusters = createClusters();
    const { upstream: elsewhere = upstream, auth, ...rest } = options;
    const edge = await startEdge(servers, {
      mapping: { allowUpgrade: ['websocket'], ...mapping },
      targets: { hotel: remote(elsewhere), ...(auth && { auth: remote(auth) }) },
      clusters,
      ...rest,
    });
    const upgrades = createUpgrades((protocol) => protocol === 'websocket');
    const front = await startHttp(servers, { handler: edge.listener, upgrades });
    servers.later(() => Promise.all([upgrades.close(0), clusters.close()]));
    const open = (headers: readonly string[] = handshake, more = '') =>
      speak(front.port, upgradeRequest(path, headers) + more);
    const active = () => clusters.snapshot()[0]?.activeUpgrades;
    const requests = () => clusters.snapshot()[0]?.activeRequests;
    const released = () =>
      eventually(() => assert.deepEqual([active(), requests(), upstream.connections()], [0, 0, 0]));
    return { upstream, edge, port: front.port, open, active, released };
  }

  /** Both sides of a switched connection. */
  async function joined(mapping: Partial<Mapping> = {}) {
    const { upstream, open, active, released } = await setUp(undefined, mapping);
    const upgradeRequest = upstream.next();
    const client = open();
    const { peer: service } = await upgradeRequest;
    await client.until('\r\n\r\n');
    return { client, service, active, released };
  }

  it('is requested like any other resource, with a rewritten path and filtered headers', async () => {
    const { upstream, open } = await setUp();
    const odd = ['Cookie: a=1', 'Keep-Alive: 5', 'TE: trailers', 'X-Forwarded-For: 1.2.3.4'];
    await open([...handshake, ...odd, 'Sec-WebSocket-Protocol: chat']).until('\r\n\r\n');
    const upgradeRequest = upstream.upgrades[0];
    assert.equal(upgradeRequest?.url, '/chat?room=1');
    const { 'x-request-id': requestId, traceparent, ...headers } = upgradeRequest.headers;
    assert.match(String(traceparent), /^00-[\da-f]{32}-[\da-f]{16}-00$/);
    assert.match(String(requestId), /^[\w-]{36}$/);
    assert.deepEqual(headers, {
      host: 'front.example',
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
      'x-forwarded-root': '/',
      via: headers['via'],
    });
  });

  it('carries 8 MiB both ways at the pace of the slower side', async () => {
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

  it('forwards early data from the client only after the service has switched', async () => {
    const { upstream, open } = await setUp(() => {});
    const upgradeRequest = upstream.next();
    const client = open(handshake, 'early');
    const { peer } = await upgradeRequest;
    client.socket.write(' and more');
    for (let count = 0; count < 2; count += 1) open();
    while (upstream.upgrades.length < 3) await upstream.next();
    assert.equal(peer.received(), '');
    peer.socket.write(`${bytesOf(switching)}welcome`);
    await Promise.all([peer.until('early and more'), client.until('\r\n\r\nwelcome')]);
  });

  for (const [first, last] of [
    ['client', 'service'],
    ['service', 'client'],
  ] as const)
    it(`lets the ${first} end its half and still receive data from the ${last}`, async () => {
      const sides = await joined();
      const [ending, other] = [sides[first], sides[last]];
      other.socket.allowHalfOpen = true;
      other.socket.once('end', () => other.socket.end('heard all'));
      ending.socket.end('question');
      assert.match(await other.closed, /question$/);
      if (first === 'client') assert.match(await ending.closed, /heard all$/);
      else assert.equal(await ending.closed, 'heard all');
    });

  for (const side of ['client', 'service'] as const)
    it(`closes a few seconds after the ${side} has ended its half, if the other side does not end its own`, async () => {
      const { released, ...sides } = await joined({ idleTimeoutMs: 0 });
      for (const { socket } of [sides.client, sides.service]) socket.allowHalfOpen = true;
      const other = side === 'client' ? sides.service : sides.client;
      // Neither data nor a longer time-out keeps a connection open whose peer may be gone.
      const talk = setInterval(() => other.socket.write('still here'), 100);
      sides[side].socket.end();
      await Promise.all([sides.client.closed, sides.service.closed, released()]);
      clearInterval(talk);
    });

  for (const side of ['client', 'service'] as const)
    it(`closes on both sides and is released when the ${side} resets its connection`, async () => {
      const { active, released, ...sides } = await joined();
      assert.equal(active(), 1);
      sides[side].socket.resetAndDestroy();
      await Promise.all([sides.client.closed, sides.service.closed, released()]);
    });

  it('closes when it is idle for longer than the mapping allows', async () => {
    const { client, service } = await joined({ idleTimeoutMs: 30 });
    await Promise.all([client.closed, service.closed]);
  });

  it('occupies no request slot, and counts towards max_upgrades until it closes', async () => {
    const circuitBreakers = breakersOf({ maxRequests: 1, maxConnections: 1, maxPendingRequests: 0, maxUpgrades: 2 });
    const { open, released, upstream } = await setUp(undefined, { circuitBreakers });
    const clients = [open()];
    await clients[0]?.until('HTTP/1.1 101 ');
    clients.push(open());
    await clients[1]?.until('HTTP/1.1 101 ');
    assert.match(await open().closed, /^HTTP\/1\.1 503 [\s\S]*Retry-After: 1/);
    assert.equal(upstream.upgrades.length, 2);
    for (const { socket } of clients) socket.destroy();
    await released();
    await open().until('HTTP/1.1 101 ');
  });

  it('leaves nothing behind after 50 connections', async () => {
    const { open, active, released } = await setUp((socket) => {
      socket.write(bytesOf(switching));
      socket.pipe(socket);
    });
    const clients = Array.from({ length: 50 }, (_, index) => ({ index, ...open(handshake, `I am ${index}.`) }));
    await Promise.all(clients.map(({ until, index }) => until(`I am ${index}.`)));
    assert.equal(active(), 50);
    for (const { socket, index } of clients) index % 2 === 0 ? socket.end() : socket.destroy();
    await Promise.all(clients.map(({ closed }) => closed));
    await released();
  });

  describe('does not switch', () => {
    function checkResponse(status: number, lines: readonly string[], expected: RegExp) {
      it(`when the service responds ${status}: the client gets that response and nothing else`, async () => {
        const { upstream, open } = await setUp((socket) => void socket.write(`${bytesOf(lines)}no!`));
        const upgradeRequest = upstream.next();
        const client = open(handshake, 'GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n');
        const { peer } = await upgradeRequest;
        const response = await client.closed;
        assert.match(response, new RegExp(`^HTTP/1\\.1 ${status} [\\s\\S]*no!$`));
        assert.match(response, expected);
        assert.match(response, /^Connection: (?:upgrade, )?close\r$/m);
        assert.equal(response.match(/HTTP\/1\.1 /g)?.length, 1);
        await peer.closed;
        assert.equal(peer.received(), '');
      });
    }

    const three = 'Content-Length: 3';
    checkResponse(403, ['HTTP/1.1 403 Forbidden', three, 'X-Why: x'], /X-Why: x/);
    checkResponse(
      426,
      ['HTTP/1.1 426 Upgrade Required', three, 'Upgrade: chat'],
      /Upgrade: chat\r\nConnection: upgrade/,
    );
    checkResponse(200, [...switching.toSpliced(0, 1, 'HTTP/1.1 200 OK'), three], /OK/);

    function checkBroken(what: string, lines: readonly string[]) {
      it(`when the service ${what}: the client gets 502`, async () => {
        const { open, edge, released } = await setUp((socket) => void socket.write(`${bytesOf(lines)}raw`));
        const response = await open().closed;
        assert.match(response, /^HTTP\/1\.1 502 /);
        assert.doesNotMatch(response, /raw/);
        await released();
        assert.deepEqual(edge.errors, []);
      });
    }

    checkBroken('names no protocol', switching.slice(0, 1));
    checkBroken('switches to another protocol', switching.toSpliced(2, 1, 'Upgrade: chat'));
    checkBroken('sends bytes that no header may contain', [...switching, 'X-Odd: a\x01b']);

    it('when the service refuses connections (503) or does not respond in time (504)', async () => {
      const refused = await setUp(undefined, {}, { upstream: await servers.refusing() });
      assert.match(await refused.open().closed, /^HTTP\/1\.1 503 [\s\S]*"code":503/);
      const late = await setUp(() => {}, { timeoutMs: 30 });
      assert.match(await late.open().closed, /^HTTP\/1\.1 504 /);
      await Promise.all([refused.released(), late.released()]);
    });

    it('when the client disconnects first: the connection to the service closes immediately', async () => {
      const { open, upstream, released } = await setUp(() => {});
      const upgradeRequest = upstream.next();
      open().socket.end();
      await (await upgradeRequest).peer.closed;
      await released();
    });

    function checkPlain(why: string, mapping: Partial<Mapping>, request = upgradeRequest(path, handshake)) {
      it(`when ${why}: the request is forwarded without Upgrade`, async () => {
        const upstream = await startUpstream(servers);
        const { port } = await setUp(undefined, mapping, { upstream });
        await speak(port, request).until('\r\nok');
        const { headers } = upstream.only();
        assert.equal(headers.upgrade, undefined);
        assert.notEqual(headers.connection?.toLowerCase(), 'upgrade');
      });
    }

    checkPlain('its mapping does not allow it', { allowUpgrade: [] });
    checkPlain('its mapping allows another protocol', { allowUpgrade: ['chat'] });
    checkPlain('Connection does not list Upgrade', {}, rawRequest(`GET ${path}`, ['Upgrade: websocket']));
    checkPlain('it has a body', {}, `${upgradeRequest(path, [...handshake, 'Content-Length: 3'])}abc`);

    it('when a limit is exhausted (429), no mapping matches (404) or the path is unsafe (400)', async () => {
      const limited = await setUp(
        undefined,
        { labels: { gateway: labelled('x-key') } },
        {
          rateLimitService: limitRecordOf(),
          limiter: { shouldRateLimit: () => ({ overallCode: 'OVER_LIMIT', statuses: [] }) },
        },
      );
      const response = await limited.open([...handshake, 'X-Key: a']).closed;
      assert.match(response, /^HTTP\/1\.1 429 [\s\S]*Retry-After: 1[\s\S]*"code":429/);
      assert.equal(limited.upstream.upgrades.length, 0);
      for (const [path, status] of [
        ['/nothing', 404],
        ['/v1/../x', 400],
      ] as const)
        assert.match(
          await speak(limited.port, upgradeRequest(path)).closed,
          new RegExp(`^HTTP/1\\.1 ${status} [\\s\\S]*"code":${status}`),
        );
    });
  });

  it('waits for the auth service, which receives a plain request for the original path', async () => {
    const auth = await startUpstream(servers, (res, { headers }) => {
      const isKnown = headers.authorization !== undefined;
      res.writeHead(isKnown ? 200 : 401, isKnown ? { 'X-Travel-User': 'demo' } : { 'WWW-Authenticate': 'Basic' });
      res.end(isKnown ? '' : 'who are you?');
    });
    const { upstream, open } = await setUp(undefined, {}, { authService: authRecordOf(), auth });
    assert.match(await open().closed, /^HTTP\/1\.1 401 [\s\S]*WWW-Authenticate: Basic[\s\S]*who are you\?$/i);
    assert.equal(upstream.upgrades.length, 0);
    await open([...handshake, 'Authorization: Basic x', 'X-Travel-User: mallory']).until('HTTP/1.1 101 ');
    assert.equal(upstream.upgrades[0]?.headers['x-travel-user'], 'demo');
    const { url, headers = {} } = auth.reached[1] ?? {};
    assert.deepEqual([url, headers['authorization']], [path, 'Basic x']);
    for (const name of ['upgrade', 'sec-websocket-key', 'x-travel-user']) assert.equal(headers[name], undefined, name);
  });
});
