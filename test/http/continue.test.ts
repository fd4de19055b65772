/** `Expect: 100-continue`: who is told to send a body, and when. */
import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { serveHttp } from '#http';
import { createSignal } from '../support/waiting.ts';
import { httpLimits } from '../support/wire/http-limits.ts';
import { everything } from './raw-exchange.ts';

const announced = 'POST / HTTP/1.1\r\nHost: desk.test\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n';
const invitation = 'HTTP/1.1 100 Continue\r\n\r\n';

async function announcing(handler: RequestListener, use: (socket: Socket) => Promise<void>): Promise<void> {
  const server = await serveHttp({ ...httpLimits, handler });
  const socket = connect(server.port, '127.0.0.1');
  socket.write(announced);
  try {
    await use(socket);
  } finally {
    socket.destroy();
    await server.close(0);
  }
}

describe('a body that is announced', () => {
  it('is asked for when somebody begins to read, once', async () => {
    const reached = createSignal();
    const wanted = createSignal();
    const handler: RequestListener = async (request, response) => {
      reached.give();
      await wanted.given;
      response.setHeader('Connection', 'close').end(await text(request));
    };
    await announcing(handler, async (socket) => {
      await reached.given;
      assert.equal(socket.bytesRead, 0);
      wanted.give();
      await new Promise<void>((resolve) => socket.once('readable', resolve));
      assert.equal(String(socket.read()), invitation);
      socket.write('hello');
      assert.match(await everything(socket), /^HTTP\/1\.1 200 OK\r\n.*\r\n\r\nhello$/s);
    });
  });

  it('is never asked for when the answer does not hang on it, and the connection ends', async () => {
    const refuse: RequestListener = (_request, response) => response.writeHead(401).end();
    await announcing(refuse, async (socket) => {
      const answer = await everything(socket);
      assert.match(answer, /^HTTP\/1\.1 401 Unauthorized\r\n/);
      assert.match(answer, /\r\nConnection: close\r\n/);
      assert.ok(!answer.includes('100 Continue'));
    });
  });

  it('may come without having been asked for', async () => {
    const echo: RequestListener = async (request, response) => {
      response.setHeader('Connection', 'close').end(await text(request));
    };
    await announcing(echo, async (socket) => {
      socket.write('hello');
      assert.match(await everything(socket), /\r\n\r\nhello$/);
    });
  });
});
