/** Socket.IO behind the gateway, below a path: by polling, by WebSocket, and with an upgrade from one to the other. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { Server } from 'socket.io';
import { io } from 'socket.io-client';
import { type Served, testServers } from '../support/serve.ts';
import { recipeRecord, startFront } from './front.ts';

const path = '/jupyter/socket.io';

describe('Socket.IO behind the gateway', () => {
  const servers = testServers(after);
  let front: Served;

  before(async () => {
    const server = createServer();
    const app = new Server(server, { path, serveClient: false });
    app.on('connection', (socket) => {
      socket.on('echo', (text: string, bytes: Buffer) => socket.emit('echoed', text, bytes));
      socket.on('ask', (answer: (transport: string) => void) => answer(socket.conn.transport.name));
    });
    front = await startFront(servers, recipeRecord('jupyter', await servers.listen(server)));
    servers.later(() => app.close());
  });

  for (const transports of [['polling'], ['websocket'], ['polling', 'websocket']]) {
    const last = transports.at(-1);
    it(`sends text and bytes in both directions: ${transports.join(', then ')}`, async () => {
      const socket = io(front.origin, { path, transports, reconnection: false, forceNew: true });
      try {
        const upgraded = transports.length === 1 || new Promise((resolve) => socket.io.engine.once('upgrade', resolve));
        await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('connect_error', reject));
        await upgraded;
        const echoed = new Promise((resolve) => socket.once('echoed', (...values) => resolve(values)));
        socket.emit('echo', 'text', Buffer.from([0, 255]));
        assert.deepEqual(await echoed, ['text', Buffer.from([0, 255])]);
        assert.equal(await socket.emitWithAck('ask'), last);
      } finally {
        socket.disconnect();
      }
    });
  }
});
