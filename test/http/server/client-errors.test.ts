import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { RequestListener, ServerOptions } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { answerClientErrors } from '#http';
import { bodyOf, everything, type RawServer, withServer } from '../raw-exchange.ts';

const answerX: RequestListener = (_request, response) => response.end('x');

function answering(
  { handler = answerX, options = {} }: { handler?: RequestListener; options?: ServerOptions },
  use: (raw: RawServer) => Promise<void>,
) {
  return withServer({ handler, options }, async (raw) => {
    answerClientErrors(raw.server);
    await use(raw);
  });
}

function assertError(response: string, status: number, reason: string) {
  assert.ok(response.startsWith(`HTTP/1.1 ${status} ${reason}\r\n`), response);
  const body = bodyOf(response);
  assert.deepEqual(JSON.parse(body), { code: status, message: `${status}: ${reason}` });
  assert.match(response, /^Content-Type: application\/json\r$/m);
  assert.match(response, new RegExp(`^Content-Length: ${Buffer.byteLength(body)}\r$`, 'm'));
  assert.match(response, /^Connection: close\r$/m);
  assert.match(response, /^Date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\r$/m);
}

describe('answerClientErrors', () => {
  function check(what: string, text: string, status: number, reason: string) {
    it(`answers ${status} in the error body for ${what}, and closes`, async () => {
      await answering({ options: { maxHeaderSize: 1024 } }, async ({ send }) => {
        assertError(await send(text), status, reason);
      });
    });
  }

  check('what is not HTTP', 'GARBAGE\r\n\r\n', 400, 'Bad Request');
  check('a method that does not exist', 'FETCH / HTTP/1.1\r\nHost: a\r\n\r\n', 400, 'Bad Request');
  check('a line break in a header name', 'GET / HTTP/1.1\r\nHo\nst: a\r\n\r\n', 400, 'Bad Request');
  check('a space before a colon', 'GET / HTTP/1.1\r\nHost : a\r\n\r\n', 400, 'Bad Request');
  check('a space in the target', 'GET /a b HTTP/1.1\r\nHost: a\r\n\r\n', 400, 'Bad Request');
  check(
    'two lengths that differ',
    'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
    400,
    'Bad Request',
  );
  check(
    'a length beside a transfer encoding',
    'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    400,
    'Bad Request',
  );
  check(
    'headers that are too large',
    `GET / HTTP/1.1\r\nHost: a\r\nX-Long: ${'x'.repeat(2000)}\r\n\r\n`,
    431,
    'Request Header Fields Too Large',
  );

  const hasty = { headersTimeout: 20, requestTimeout: 20, connectionsCheckingInterval: 5 };

  it('answers 408 in the error body when the headers do not come in time, and closes', async () => {
    await answering({ options: hasty }, async ({ send }) => {
      assertError(await send('GET / HTTP/1.1\r\nHost: a\r\n'), 408, 'Request Timeout');
    });
  });

  it('answers 408 when the body does not come in time', async () => {
    await answering({ options: hasty, handler: () => {} }, async ({ send }) => {
      assertError(await send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na'), 408, 'Request Timeout');
    });
  });

  it('does not carry out the request whose rest comes after the 408', async () => {
    let carriedOut = false;
    const handler: RequestListener = (_request, response) => {
      carriedOut = true;
      response.end();
    };
    await answering({ options: hasty, handler }, async ({ open }) => {
      const socket = open();
      const answer = everything(socket).catch(() => '');
      socket.write('POST / HTTP/1.1\r\nHost: a\r\n');
      await once(socket, 'data');
      socket.write('Content-Length: 0\r\n\r\n');
      await answer;
    });
    assert.equal(carriedOut, false);
  });

  it('closes the connection of a client that sends nothing after its response', async () => {
    await answering({}, async ({ open, server }) => {
      const closed = once(server, 'connection').then(([socket]) => once(socket, 'close'));
      const socket = open();
      socket.allowHalfOpen = true;
      socket.write('GARBAGE\r\n\r\n');
      await closed;
      socket.destroy();
    });
  });

  it('answers well-formed requests of a connection before the malformed one', async () => {
    await answering({}, async ({ open }) => {
      const socket = open();
      const answers = everything(socket);
      socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
      await once(socket, 'data');
      socket.write('GARBAGE\r\n\r\n');
      assert.deepEqual((await answers).match(/HTTP\/1\.1 \d{3}/g), ['HTTP/1.1 200', 'HTTP/1.1 400']);
    });
  });

  it('writes nothing into a response that has begun', async () => {
    const handler: RequestListener = (request, response) => {
      request.resume();
      response.writeHead(200, { 'Content-Length': '1000' });
      response.write('half');
    };
    await answering({ handler }, async ({ open }) => {
      const socket = open();
      const answer = everything(socket).catch(() => 'reset');
      socket.write('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n');
      await once(socket, 'data');
      socket.write('not a chunk\r\n');
      assert.ok(!(await answer).includes('400'));
    });
  });

  it('ends a TLS connection that never begins its handshake', async () => {
    const server = createTlsServer({ handshakeTimeout: 20 });
    answerClientErrors(server);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.resume();
    await once(socket, 'close');
    server.close();
  });
});
