/** A WebSocket through the whole server: on its own listener, in another app, during a reload, and during a shutdown. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { constants } from 'node:http2';
import Koa from 'koa';
import mount from 'koa-mount';
import { WebSocket } from 'undici';
import type { FrontdeskOptions } from '../../src/index.ts';
import { annRecord, authRecord, desksOf, limitRecord, mappingRecord } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { eventually } from '../support/waiting.ts';
import { acceptOf, echoWebSocket, switchingLines } from '../support/wire/echo-websocket.ts';
import { startConnectClient } from '../support/wire/extended-connect.ts';
import { speak, upgradeRequest } from '../support/wire/peer.ts';
import { startSwitchingUpstream } from '../support/wire/switching-upstream.ts';

const credentials = { authorization: `Basic ${btoa('ann:secret')}` };

describe('a server with allow_upgrade', () => {
  const servers = testServers();
  const open = desksOf(servers);
  const writeFiles = temporaryFiles();

  /** Starts a server for a service that echoes each WebSocket message. */
  async function openDesk(mapping: object = {}, options: FrontdeskOptions = {}) {
    const echo = await startSwitchingUpstream(servers, echoWebSocket);
    const chat = mappingRecord('chat', '/v1/chat', echo.origin, { allow_upgrade: ['websocket'], ...mapping });
    const desk = await open({
      config: { records: [chat, authRecord, limitRecord], users: [annRecord] },
      demo: false,
      ...options,
    });
    return { desk, echo };
  }

  async function checkWebSocket(url: string) {
    const client = new WebSocket(url, { headers: credentials, protocols: ['chat'] });
    await once(client, 'open');
    client.send('hello');
    const [{ data }] = (await once(client, 'message')) as [{ data: unknown }];
    assert.equal(data, 'hello');
    return client;
  }

  it('opens a WebSocket for authenticated users, and rejects others with an error body', async () => {
    const { desk, echo } = await openDesk();
    const { gateway } = await desk.listen();
    const port = gateway.port;
    const client = await checkWebSocket(`ws://127.0.0.1:${port}/v1/chat/room`);
    assert.equal(echo.upgrades[0]?.url, '/room');
    assert.equal(echo.upgrades[0]?.headers['x-travel-user'], 'ann');
    client.close();
    await once(client, 'close');
    const refused = await speak(port, upgradeRequest('/v1/chat/room', ['X-Travel-User: ann'])).closed;
    assert.match(refused, /^HTTP\/1\.1 401 [\s\S]*"code":401/);
    assert.equal(echo.upgrades.length, 1);
  });

  it('opens a WebSocket through another app that mounts the server under a path', async () => {
    const { desk, echo } = await openDesk();
    const app = new Koa().use(mount('/travel', desk.middleware));
    const server = createServer(app.callback()).on('upgrade', desk.upgradesThrough(app.callback()));
    const { port } = await servers.listen(server);
    const client = await checkWebSocket(`ws://127.0.0.1:${port}/travel/v1/chat/room`);
    assert.equal(echo.upgrades[0]?.headers['x-forwarded-prefix'], '/travel/v1/chat');
    client.close();
    await once(client, 'close');
  });

  describe('over HTTP/2', () => {
    const encoded = { authorization: credentials.authorization, 'sec-websocket-version': '13' };

    async function connecting(mapping: object = {}, options: FrontdeskOptions = {}) {
      const lines: Readonly<Record<string, unknown>>[] = [];
      const info = (fields: object, message?: string) => void (message === 'request' && lines.push({ ...fields }));
      const { desk, echo } = await openDesk(mapping, { logger: { info, warn() {}, error() {} }, ...options });
      const { gateway } = await desk.listen();
      return { ...(await startConnectClient(servers, gateway.url)), desk, echo, lines };
    }

    it('opens a WebSocket for authenticated users, as a GET with an upgrade, and logs it with 101', async () => {
      const { open: connect, echo, lines } = await connecting();
      const client = connect('/v1/chat/room', { ...encoded, 'sec-websocket-protocol': 'chat' });
      const head = await client.response;
      assert.equal(head[':status'], 200);
      assert.equal(head['sec-websocket-protocol'], 'chat');
      assert.equal(head['sec-websocket-accept'], undefined);
      client.socket.write(masked(1, 'hello'));
      await client.until('hello');
      client.socket.end(masked(8, ''));
      await client.closed;
      assert.equal(client.socket.rstCode, 0);
      const upgrade = echo.upgrades[0];
      assert.equal(upgrade?.url, '/room');
      assert.equal(upgrade?.headers['x-travel-user'], 'ann');
      assert.equal(upgrade?.headers['sec-websocket-protocol'], 'chat');
      await eventually(() => assert.equal(lines.length, 1));
      const { method, path, protocol, status, user, mapping, bytesIn, bytesOut } = lines[0] ?? {};
      const expected = { method: 'GET', path: '/v1/chat/room', protocol: 'HTTP/2.0', status: 101, user: 'ann' };
      assert.deepEqual({ method, path, protocol, status, user, mapping }, { ...expected, mapping: 'chat' });
      const headBytes = Number(bytesIn) - masked(1, 'hello').length - masked(8, '').length;
      assert.ok(headBytes > 100 && headBytes < 400, `bytesIn of the head: ${headBytes}`);
      assert.ok(Number(bytesOut) > 'hello'.length + 4, `bytesOut: ${bytesOut}`);
    });

    it('rejects others with an error body, before the service sees the request', async () => {
      const { open: connect, echo } = await connecting();
      const client = connect('/v1/chat/room', { 'x-travel-user': 'ann' });
      assert.equal((await client.response)[':status'], 401);
      assert.match(await client.closed, /"code":401/);
      assert.equal(echo.upgrades.length, 0);
    });

    it('gets 501 where the protocol is not allowed, and the log says which one', async () => {
      const { open: connect, lines } = await connecting();
      const client = connect('/v1/chat/room', { ...encoded, ':protocol': 'Other' });
      assert.equal((await client.response)[':status'], 501);
      assert.match(await client.closed, /"code":501/);
      await eventually(() => assert.equal(lines.length, 1));
      assert.equal(lines[0]?.['problem'], 'unknown-protocol');
      assert.equal(lines[0]?.['refusedUpgrade'], 'other');
    });

    it('gets 501 from a service of the process, which sees an ordinary request', async () => {
      const own = new Koa().use((ctx) => {
        ctx.body = 'own';
      });
      const { open: connect, lines } = await connecting({ service: 'own' }, { services: { own } });
      const client = connect('/v1/chat', encoded);
      assert.equal((await client.response)[':status'], 501);
      await client.closed;
      await eventually(() => assert.equal(lines[0]?.['status'], 501));
    });

    for (const [what, lines, expected] of [
      ['another accept than that of the key', [...switchingLines, 'Sec-WebSocket-Accept: digest'], 502],
      ['an ordinary success', ['HTTP/1.1 200 OK', 'Content-Length: 2'], 501],
      ['a refusal', ['HTTP/1.1 403 Forbidden', 'Content-Length: 0', 'X-Why: full'], 403],
    ] as const)
      it(`responds with ${expected} if the service sends ${what}`, async () => {
        const service = await startSwitchingUpstream(servers, (socket) => {
          socket.write(`${[...lines, '', ''].join('\r\n')}ok`);
        });
        const { open: connect } = await connecting({ service: service.origin });
        const client = connect('/v1/chat', encoded);
        const head = await client.response;
        assert.equal(head[':status'], expected);
        assert.equal(head['x-why'], expected === 403 ? 'full' : undefined);
        await client.closed;
      });

    it('resets the stream when the service breaks off, and leaves the others alone', async () => {
      const { open: connect, echo } = await connecting();
      const [first, second] = [connect('/v1/chat/1', encoded), connect('/v1/chat/2', encoded)];
      await Promise.all([first.response, second.response]);
      echo.upgrades.find(({ url }) => url === '/1')?.peer.socket.resetAndDestroy();
      await first.closed;
      assert.equal(first.socket.rstCode, constants.NGHTTP2_CANCEL);
      second.socket.write(masked(1, 'still'));
      await second.until('still');
    });

    it('closes the connection to the service when the client resets the stream', async () => {
      const { open: connect, echo } = await connecting();
      const client = connect('/v1/chat/room', encoded);
      await client.response;
      client.socket.close(constants.NGHTTP2_CANCEL);
      await echo.upgrades[0]?.peer.closed;
    });

    it('lets the client end its half, and still sends what the service has to say', async () => {
      const service = await startSwitchingUpstream(servers, (socket, { headers }) => {
        socket.allowHalfOpen = true;
        socket.write(`${[...switchingLines, `Sec-WebSocket-Accept: ${acceptOf(headers)}`, '', ''].join('\r\n')}`);
        socket.once('end', () => socket.end('the last word'));
      });
      const { open: connect } = await connecting({ service: service.origin });
      const client = connect('/v1/chat', encoded);
      await client.response;
      client.socket.end();
      assert.equal(await client.closed, 'the last word');
      assert.equal(client.socket.rstCode, 0);
    });

    it('closes a stream on which nothing moves for idle_timeout_ms', async () => {
      const { open: connect, echo } = await connecting({ idle_timeout_ms: 50 });
      const client = connect('/v1/chat', encoded);
      await client.response;
      await client.closed;
      assert.equal(client.socket.rstCode, constants.NGHTTP2_CANCEL);
      await echo.upgrades[0]?.peer.closed;
    });

    it('counts against max_upgrades', async () => {
      const { open: connect } = await connecting({ circuit_breakers: [{ max_upgrades: 1 }] });
      const first = connect('/v1/chat/1', encoded);
      await first.response;
      assert.equal((await connect('/v1/chat/2', encoded).response)[':status'], 503);
    });

    it('ends switched streams at the deadline when closed, without counting them as requests', async () => {
      const warnings: unknown[] = [];
      const logger = {
        info() {},
        error() {},
        warn: (_fields: object, message?: string) => void warnings.push(message),
      };
      const { open: connect, desk } = await connecting({}, { shutdownTimeoutMs: 60, logger });
      const client = connect('/v1/chat', encoded);
      await client.response;
      const closed = desk.close();
      client.socket.write(masked(1, 'still'));
      await client.until('still');
      await Promise.all([closed, client.closed]);
      assert.deepEqual(warnings, []);
    });
  });

  it('rejects an app in place of its callback before any client opens a WebSocket', async () => {
    const { desk } = await openDesk();
    const app: unknown = new Koa();
    assert.throws(
      () => desk.upgradesThrough(app as RequestListener),
      /^TypeError: upgradesThrough: .* app\.callback\(\)$/,
    );
  });

  it('does not offer upgrades to services of its process, which see an ordinary request', async () => {
    const own = new Koa().use((ctx) => {
      ctx.body = `own ${ctx.get('Sec-WebSocket-Version')}`;
    });
    const { desk } = await openDesk({ service: 'own' }, { services: { own } });
    const { gateway } = await desk.listen();
    const headers = [`Authorization: ${credentials.authorization}`, 'Sec-WebSocket-Version: 13'];
    const answer = await speak(gateway.port, upgradeRequest('/v1/chat', headers)).closed;
    assert.match(answer, /^HTTP\/1\.1 200 [\s\S]*own 13$/);
  });

  it('reloads which upgrades are allowed, without affecting open connections', async () => {
    const { origin } = await startSwitchingUpstream(servers, echoWebSocket);
    const [allowed, forbidden] = [{ allow_upgrade: ['websocket'] }, {}].map((fields) =>
      JSON.stringify(mappingRecord('chat', '/v1/chat', origin, fields)),
    );
    const directory = await writeFiles({ 'services/chat.yaml': forbidden ?? '' });
    const desk = await open({ config: directory, demo: false });
    const port = (await desk.listen()).gateway.port;
    const change = async (text = '', expected: string) => {
      await writeFile(`${directory}/services/chat.yaml`, text);
      for (let status = ''; status !== expected; ) {
        const other = speak(port, upgradeRequest('/v1/chat'));
        await other.until('\r\n');
        status = other.received().slice(9, 12);
        other.socket.destroy();
      }
    };
    await change(allowed, '101');
    const client = await checkWebSocket(`ws://127.0.0.1:${port}/v1/chat`);
    await change(forbidden, '200');
    client.send('still');
    await once(client, 'message');
    client.close();
    await once(client, 'close');
  });

  it('ends upgraded connections at the deadline when closed, and not before', async () => {
    const { desk, echo } = await openDesk({}, { shutdownTimeoutMs: 60 });
    const { gateway } = await desk.listen();
    const client = await checkWebSocket(`ws://127.0.0.1:${gateway.port}/v1/chat`);
    const gone = once(client, 'close');
    const closed = desk.close();
    client.send('still');
    const [{ data }] = (await once(client, 'message')) as [{ data: unknown }];
    assert.equal(data, 'still');
    await Promise.all([closed, gone, echo.upgrades[0]?.peer.closed]);
  });
});

/** A frame of a client, with a short text. */
function masked(opcode: number, text: string): Buffer {
  const mask = [1, 2, 3, 4];
  const payload = Buffer.from(text).map((byte, index) => byte ^ (mask[index % 4] ?? 0));
  return Buffer.from([0x80 | opcode, 0x80 | payload.length, ...mask, ...payload]);
}
