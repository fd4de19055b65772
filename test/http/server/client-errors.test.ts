/** Input that is not a valid request: the response, what happens to the connection, and what is logged. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { connect } from 'node:net';
import { PassThrough } from 'node:stream';
import { mock } from 'node:test';
import { silentLogger } from '#foundation';
import { createConnectionLimit, type HttpServerOptions } from '#http';
import { createClientErrorLog } from '../../../src/http/server/client-errors.ts';
import { testServers } from '../../support/serve.ts';
import { eventually } from '../../support/waiting.ts';
import { startHttp } from '../../support/wire/http-server.ts';
import { preface } from '../../support/wire/http2-frames.ts';
import { peerOf, speak } from '../../support/wire/peer.ts';
import { bodyOf, sendRaw } from '../../support/wire/raw-client.ts';

type Line = Readonly<Record<string, unknown>>;

const servers = testServers();

async function logging(options: Partial<HttpServerOptions> = {}) {
  const lines: Line[] = [];
  const logger = { warn: (fields: object) => void lines.push({ ...fields }) };
  const { port } = await startHttp(servers, { logger, ...options });
  return { port, lines };
}

const reasons: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  408: 'Request Timeout',
  431: 'Request Header Fields Too Large',
  501: 'Not Implemented',
};

/** Asserts that the last response is an error body, after which the connection closes. */
function assertError(responses: string, status: number) {
  const response = responses.slice(responses.lastIndexOf('HTTP/1.1 '));
  const reason = reasons[status];
  assert.ok(response.startsWith(`HTTP/1.1 ${status} ${reason}\r\n`), response);
  const body = bodyOf(response);
  assert.deepEqual(JSON.parse(body), { code: status, message: `${status}: ${reason}` });
  assert.match(response, /^Content-Type: application\/json\r$/m);
  assert.match(response, new RegExp(`^Content-Length: ${Buffer.byteLength(body)}\r$`, 'm'));
  assert.match(response, /^Connection: close\r$/m);
  assert.match(response, /^Date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\r$/m);
}

describe('input that is not a valid request', () => {
  const rest = ' HTTP/1.1\r\nHost: a\r\nCookie: secret\r\n\r\n';
  const post = 'POST /a HTTP/1.1\r\nHost: a\r\n';
  const silent: RequestListener = () => {};
  /** Long enough for the beginning of the head to arrive on a busy machine. */
  const tooLate = { headerTimeoutMs: 1000 };
  const get = { method: 'GET', path: '/a' };
  const posted = { method: 'POST', path: '/a' };
  const longPath = `/${'x'.repeat(199)}`;
  for (const [what, text, status, logged, options] of [
    ['text that is not HTTP', 'secret\r\n\r\n', 400, { method: undefined, path: undefined }],
    ['non-HTTP data after a request', `GET /a${rest}secret\r\n\r\n`, 400, get],
    ['a line break in a header name', 'GET /a HTTP/1.1\r\nHo\nst: secret\r\n\r\n', 400, get],
    ['a space before a colon', 'GET /a HTTP/1.1\r\nHost : secret\r\n\r\n', 400, get],
    ['a NUL in a header', 'GET /a HTTP/1.1\r\nAuthorization: secret\r\nX: a\0b\r\n\r\n', 400, get],
    ['a space in the target', `GET /a b${rest}`, 400, { path: '/a%20b' }],
    ['a non-ASCII byte in the query', `GET /caf?q=\u00fc${rest}`, 400, { path: '/caf' }],
    ['a non-ASCII byte in the path', `GET /\u00c3\u00bc\u0001${rest}`, 400, { path: '/%C3%BC%01' }],
    ['an absolute target', `GET http://u:secret@h/a${rest.replace('secret', 'se\0cret')}`, 400, get],
    ['two lengths that differ', `${post}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`, 400, posted],
    ['a length and a coding', `${post}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 400, posted],
    ['a malformed chunk', `${post}Transfer-Encoding: chunked\r\n\r\nsecret\r\n`, 400, posted, { handler: silent }],
    ['an incomplete head', post, 408, { path: undefined }, tooLate],
    ['an incomplete body', `${post}Content-Length: 2\r\n\r\na`, 408, posted, { requestTimeoutMs: 20, handler: silent }],
    ['headers that are too large', `GET /a HTTP/1.1\r\nX: ${'x'.repeat(2000)}`, 431, get, { headerBytesMax: 1024 }],
    ['a target that is too long', `GET /${'x'.repeat(17_000)}`, 431, { path: longPath }],
    ['an unknown method', `FETCH /a?token=secret${rest}`, 501, { method: 'FETCH', path: '/a' }],
    ['an unknown method in a pipeline', `GET /a${rest}FETCH /b${rest}`, 501, { method: 'FETCH', path: '/b' }],
    ['an unknown method with a long path', `FETCH /${'x'.repeat(299)}${rest}`, 501, { path: longPath }],
    ['a method that begins like another', `GETX /a${rest}`, 501, { method: 'GETX', path: '/a' }],
    ['a method in lower case', `get /a${rest}`, 501, { method: 'get', path: '/a' }],
    ['a method of RTSP', `DESCRIBE /a${rest}`, 501, { method: 'DESCRIBE', path: '/a' }],
    ['CONNECT', 'CONNECT b:443 HTTP/1.1\r\nHost: b:443\r\n\r\n', 501, { method: 'CONNECT' }],
  ] as const satisfies readonly (readonly [string, string, number, Line, Partial<HttpServerOptions>?])[])
    it(`gets a ${status} error body, and only its request line is logged: ${what}`, async () => {
      const { port, lines } = await logging(options);
      assertError(await sendRaw(port, text), status);
      const [line = {}, ...more] = lines;
      assert.deepEqual(more, []);
      assert.match(String(line['client']), /127\.0\.0\.1$/);
      assert.equal(line['status'], status);
      assert.ok(typeof line['reason'] === 'string' && line['reason'] !== '');
      for (const [name, value] of Object.entries(logged)) assert.equal(line[name], value, name);
      assert.doesNotMatch(JSON.stringify(line), /secret|Cookie/);
    });

  it('is logged as what it is if it is HTTP/2, which is turned off', async () => {
    const { port, lines } = await logging();
    assertError(await sendRaw(port, `${preface}\0\0\0\x04\0\0\0\0\0`), 400);
    assert.match(String(lines[0]?.['reason']), /^HTTP\/2 is not served here: HTTP2 is false/);
  });

  it('closes the connection even if the client keeps its side open', async () => {
    const limit = createConnectionLimit({ max: 10, logger: silentLogger });
    const { port } = await logging({ connectionShare: limit.share() });
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    socket.write('GARBAGE\r\n\r\n');
    await once(socket, 'data');
    await eventually(() => assert.equal(limit.counts().open, 0));
    socket.destroy();
  });

  it('gets no error body in the middle of a response', async () => {
    const handler: RequestListener = (request, response) => {
      request.resume();
      response.writeHead(200, { 'Content-Length': '1000' });
      response.write('half');
    };
    const { port, lines } = await logging({ handler });
    const { socket, until, closed } = speak(port, `${post}Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n`);
    await until('half');
    socket.write('not a chunk\r\n');
    assert.ok(!(await closed).includes('400'));
    assert.deepEqual(
      lines.map(({ status }) => status),
      [undefined],
    );
  });

  it('is logged once a second, with the number of lines left out', () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      const lines: unknown[] = [];
      const warn = ({ reason, leftOut }: Line) => void lines.push(leftOut === undefined ? reason : [reason, leftOut]);
      const log = createClientErrorLog({ warn: (fields) => warn({ ...fields }) });
      const send = (reason: string) => log(new Error(reason), new PassThrough(), 400);
      for (const reason of ['a', 'b', 'c', 'd']) send(reason);
      assert.deepEqual(lines, ['a']);
      mock.timers.tick(1000);
      assert.deepEqual(lines, ['a', ['b', 2]]);
      send('e');
      mock.timers.tick(1000);
      mock.timers.tick(1000);
      send('f');
      assert.deepEqual(lines, ['a', ['b', 2], 'e', 'f']);
    } finally {
      mock.timers.reset();
    }
  });

  it('is not logged if there is none: a connection without data', async () => {
    const { port, lines } = await logging({ headerTimeoutMs: 20 });
    assert.match(await peerOf(connect(port, '127.0.0.1')).closed, /^HTTP\/1\.1 408 /);
    assert.deepEqual(lines, []);
  });

  it('is neither logged nor responded to if a client skips the rest of a body after its response', async () => {
    const { port, lines } = await logging();
    const { socket, closed } = speak(port, `${post}Content-Length: 5\r\n\r\nab`);
    await once(socket, 'data');
    socket.end();
    assert.match(await closed, /^HTTP\/1\.1 200 (?!.*HTTP)/s);
    assert.deepEqual(lines, []);
  });
});
