/** Responses to input that is not a valid request, and what happens to its connection. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener, type ServerOptions } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect } from 'node:net';
import { respondToClientErrors } from '../../../src/http/server/client-errors.ts';
import { testServers } from '../../support/serve.ts';
import { peerOf } from '../../support/wire/peer.ts';
import { bodyOf, sendRaw } from '../../support/wire/raw-client.ts';

const sendX: RequestListener = (_request, response) => response.end('x');

type Setup = { readonly handler?: RequestListener; readonly options?: ServerOptions };

const servers = testServers();

async function serving({ handler = sendX, options = {} }: Setup = {}) {
  const server = createServer(options, handler);
  respondToClientErrors(server, (_socket, end) => end());
  const { port } = await servers.listen(server);
  return { server, port };
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

describe('respondToClientErrors', () => {
  const post = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n';
  for (const [what, text] of Object.entries({
    'text that is not HTTP': 'GARBAGE\r\n\r\n',
    'a line break in a header name': 'GET / HTTP/1.1\r\nHo\nst: a\r\n\r\n',
    'a space before a colon': 'GET / HTTP/1.1\r\nHost : a\r\n\r\n',
    'a space in the target': 'GET /a b HTTP/1.1\r\nHost: a\r\n\r\n',
    'two lengths that differ': `${post}Content-Length: 2\r\n\r\nab`,
    'a length in addition to a transfer encoding': `${post}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  }))
    it(`sends a 400 error body for ${what} and closes the connection`, async () => {
      const { port } = await serving();
      assertError(await sendRaw(port, text), 400, 'Bad Request');
    });

  for (const method of ['FETCH', 'GETX', 'get', 'DESCRIBE', 'CONNECT'])
    it(`sends a 501 error body for the method ${method} and closes the connection`, async () => {
      const { port } = await serving();
      assertError(await sendRaw(port, `${method} / HTTP/1.1\r\nHost: a\r\n\r\n`), 501, 'Not Implemented');
    });

  it('sends a 431 error body for headers that are too large and closes the connection', async () => {
    const { port } = await serving({ options: { maxHeaderSize: 1024 } });
    const text = `GET / HTTP/1.1\r\nHost: a\r\nX-Long: ${'x'.repeat(2000)}\r\n\r\n`;
    assertError(await sendRaw(port, text), 431, 'Request Header Fields Too Large');
  });

  const hasty = { headersTimeout: 20, requestTimeout: 20, connectionsCheckingInterval: 5 };

  for (const [what, text] of Object.entries({
    head: 'GET / HTTP/1.1\r\nHost: a\r\n',
    body: 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na',
  }))
    it(`sends a 408 error body if the ${what} does not arrive in time and closes the connection`, async () => {
      const { port } = await serving({ options: hasty, handler: () => {} });
      assertError(await sendRaw(port, text), 408, 'Request Timeout');
    });

  it('does not handle a request that is completed after the 408', async () => {
    let isHandled = false;
    const handler: RequestListener = (_request, response) => {
      isHandled = true;
      response.end();
    };
    const { port } = await serving({ options: hasty, handler });
    const socket = connect(port, '127.0.0.1');
    const response = peerOf(socket).closed;
    socket.write('POST / HTTP/1.1\r\nHost: a\r\n');
    await once(socket, 'data');
    socket.write('Content-Length: 0\r\n\r\n');
    await response;
    assert.equal(isHandled, false);
  });

  it('closes the connection even if the client keeps its side open', async () => {
    const { port, server } = await serving();
    const closed = once(server, 'connection').then(([socket]) => once(socket, 'close'));
    const socket = connect(port, '127.0.0.1');
    socket.allowHalfOpen = true;
    socket.write('GARBAGE\r\n\r\n');
    await closed;
    socket.destroy();
  });

  it('responds to well-formed requests on a connection before the malformed one', async () => {
    const { port } = await serving();
    const socket = connect(port, '127.0.0.1');
    const responses = peerOf(socket).closed;
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await once(socket, 'data');
    socket.write('GARBAGE\r\n\r\n');
    assert.deepEqual((await responses).match(/HTTP\/1\.1 \d{3}/g), ['HTTP/1.1 200', 'HTTP/1.1 400']);
  });

  it('writes nothing into a response that has begun', async () => {
    const handler: RequestListener = (request, response) => {
      request.resume();
      response.writeHead(200, { 'Content-Length': '1000' });
      response.write('half');
    };
    const { port } = await serving({ handler });
    const socket = connect(port, '127.0.0.1');
    const response = peerOf(socket).closed;
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n');
    await once(socket, 'data');
    socket.write('not a chunk\r\n');
    assert.ok(!(await response).includes('400'));
  });

  it('closes a TLS connection that never starts the handshake', async () => {
    const server = createTlsServer({ handshakeTimeout: 20 });
    respondToClientErrors(server, () => {});
    const { port } = await servers.listen(server);
    await once(connect(port, '127.0.0.1').resume(), 'close');
  });
});
