/** A WebSocket through the whole server: on its own listener, in another app, during a reload, and during a shutdown. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import Koa from 'koa';
import mount from 'koa-mount';
import { WebSocket } from 'undici';
import type { FrontdeskOptions } from '../../src/index.ts';
import { annRecord, authRecord, desksOf, limitRecord, mappingRecord } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { speak, upgradeRequest } from '../support/wire/peer.ts';
import { startSwitchingUpstream, type UpgradeRequest } from '../support/wire/switching-upstream.ts';

const credentials = { authorization: `Basic ${btoa('ann:secret')}` };

describe('a server with allow_upgrade', () => {
  const servers = testServers();
  const open = desksOf(servers);
  const writeFiles = temporaryFiles();

  /** Starts a server for a service that echoes each WebSocket message. */
  async function openDesk(mapping: object = {}, options: FrontdeskOptions = {}) {
    const echo = await startSwitchingUpstream(servers, echoFrames);
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
    const { origin } = await startSwitchingUpstream(servers, echoFrames);
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

/** The part of RFC 6455 that the test needs: echoes short texts of one frame each, and the client's close frame. */
function echoFrames(socket: Socket, { headers }: UpgradeRequest): void {
  const key = `${headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
  const accept = createHash('sha1').update(key).digest('base64');
  const lines = ['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', 'Upgrade: websocket'];
  socket.write([...lines, `Sec-WebSocket-Accept: ${accept}`, 'Sec-WebSocket-Protocol: chat', '', ''].join('\r\n'));
  let rest = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    for (let frame = frameOf(rest); frame !== undefined; frame = frameOf(rest)) {
      rest = rest.subarray(frame.length);
      socket.write(Buffer.from([frame.head, frame.payload.length, ...frame.payload]));
      if ((frame.head & 0x0f) === 8) socket.end();
    }
  });
}

function frameOf(bytes: Buffer): { head: number; payload: Buffer; length: number } | undefined {
  const size = (bytes[1] ?? 0) & 0x7f;
  if (bytes.length < 6 + size) return undefined;
  const mask = bytes.subarray(2, 6);
  const payload = Buffer.from(bytes.subarray(6, 6 + size).map((byte, index) => byte ^ (mask[index % 4] ?? 0)));
  return { head: bytes[0] ?? 0, payload, length: 6 + size };
}
