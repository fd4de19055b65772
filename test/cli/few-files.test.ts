/** A process that may open few files: all clients get a response, whatever others do with their connections. */
import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import request from 'supertest';
import { startServer } from '../support/programs/frontdesk-process.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles, yamlOf } from '../support/temporary-files.ts';
import { eventually } from '../support/waiting.ts';
import { sendRaw, statusOf } from '../support/wire/raw-client.ts';

const text = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`;

describe('a process that may open few files', () => {
  const servers = testServers();
  const writeFiles = temporaryFiles();

  /** The service never responds to `/held`. */
  async function start(openFiles: number, env: Readonly<Record<string, string>> = {}) {
    const held = { requests: 0 };
    const service = await servers.http(({ url }, response) => {
      if (url === '/held') held.requests += 1;
      else response.end('served');
    });
    const mapping = { apiVersion: 'gateway/v1', kind: 'Mapping', name: 'a', prefix: '/', service: service.origin };
    const CONFIG_DIR = await writeFiles({ 'services/a.yaml': yamlOf(mapping) });
    const server = await startServer([], { openFiles, env: { CONFIG_DIR, SHUTDOWN_TIMEOUT_MS: '1', ...env } });
    servers.later(server.stop);
    return { server, held, port: Number(new URL(server.gatewayUrl).port) };
  }

  function open(port: number, count: number, firstBytes = ''): readonly Socket[] {
    const sockets = Array.from({ length: count }, () => connect(port, '127.0.0.1').on('error', () => {}));
    for (const socket of sockets) socket.resume().write(firstBytes);
    servers.later(() => {
      for (const socket of sockets) socket.destroy();
    });
    return sockets;
  }

  it('responds with 503 to new clients when as many requests as possible wait for a service', async () => {
    const { held, port } = await start(128);
    const busy: Socket[] = [];
    // One after the other, until the first is refused.
    for (;;) {
      const before = held.requests;
      const [socket] = open(port, 1, text('/held')) as [Socket];
      const isRefused = await eventually(() => {
        assert.ok(held.requests > before || socket.bytesRead > 0 || socket.closed);
        return held.requests === before;
      });
      if (isRefused) break;
      busy.push(socket);
    }
    assert.ok(busy.length >= 30, `${busy.length} requests in progress`);
    for (let times = 0; times < 20; times += 1) assert.equal(statusOf(await sendRaw(port, text('/a'))), 503);
    const together = await Promise.all(Array.from({ length: 20 }, () => sendRaw(port, text('/a'))));
    assert.deepEqual(together.map(statusOf), Array(20).fill(503));
    for (const socket of busy) socket.destroy();
    await eventually(async () => assert.equal(statusOf(await sendRaw(port, text('/a'))), 200));
  });

  it('responds on every listener while the admin port has more connections than that', async () => {
    const { server, port } = await start(300, { ADMIN_PORT: '0' });
    const idle = open(Number(new URL(server.adminUrl).port), 400);
    await eventually(() => assert.ok(idle.every(({ connecting }) => !connecting)));
    for (let times = 0; times < 20; times += 1) assert.equal(statusOf(await sendRaw(port, text('/a'))), 200);
    await request(server.adminUrl).get('/metrics').expect(200);
    assert.ok(idle.filter(({ closed }) => closed).length >= 300);
  });
});
