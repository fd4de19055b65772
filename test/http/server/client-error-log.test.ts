/** The log lines about input that is not HTTP: what they contain, and at most one a second. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener, type ServerOptions } from 'node:http';
import { connect } from 'node:net';
import { PassThrough } from 'node:stream';
import { mock } from 'node:test';
import { createClientErrorLog, respondToClientErrors } from '../../../src/http/server/client-errors.ts';
import { testServers } from '../../support/serve.ts';
import { peerOf, speak } from '../../support/wire/peer.ts';
import { sendRaw } from '../../support/wire/raw-client.ts';

type Line = Readonly<Record<string, unknown>>;

const sendX: RequestListener = (_request, response) => response.end('x');

/** The `maxHeaderSize` of frontdesk. */
const limits = { maxHeaderSize: 16_384 };

const servers = testServers();

async function logging(options: ServerOptions = limits) {
  const lines: Line[] = [];
  const server = createServer(options, sendX);
  const logger = { warn: (fields: object) => void lines.push({ ...fields }) };
  respondToClientErrors(server, (_socket, end) => end(), createClientErrorLog(logger));
  const { port } = await servers.listen(server);
  return { port, lines };
}

describe('createClientErrorLog', () => {
  const rest = ' HTTP/1.1\r\nHost: a\r\nCookie: secret\r\n\r\n';
  const bad = `X: a\0b\r\n`;
  for (const [what, text, expected] of [
    ['a non-ASCII byte in the query', `GET /caf?q=\u00fc${rest}`, { status: 400, method: 'GET', path: '/caf' }],
    ['a non-ASCII byte in the path', `GET /\u00c3\u00bc\u0001${rest}`, { method: 'GET', path: '/%C3%BC%01' }],
    ['an unknown method', `FETCH /a?token=secret${rest}`, { status: 501, method: 'FETCH', path: '/a' }],
    ['a blank in the target', `GET /a b${rest}`, { method: 'GET', path: '/a%20b' }],
    ['an absolute target', `GET http://u:secret@h/a${rest.replace('secret', 'se\0cret')}`, { path: '/a' }],
    ['a path of 300 characters', `FETCH /${'x'.repeat(299)}${rest}`, { path: `/${'x'.repeat(199)}` }],
    ['a target beyond the header limit', `GET /${'x'.repeat(17_000)}`, { status: 431, path: `/${'x'.repeat(199)}` }],
    ['a malformed header', `GET /a HTTP/1.1\r\nAuthorization: secret\r\n${bad}\r\n`, { status: 400, path: '/a' }],
    ['non-HTTP data after a request', `GET /a${rest}secret\r\n\r\n`, { status: 400, method: 'GET', path: '/a' }],
    ['a CONNECT request', 'CONNECT b:443 HTTP/1.1\r\nHost: b:443\r\n\r\n', { status: 501, method: 'CONNECT' }],
    ['a pipelined request', `GET /a${rest}FETCH /b${rest}`, { method: 'FETCH', path: '/b' }],
    [
      'a malformed chunk',
      `POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nsecret\r\n`,
      { path: '/a' },
    ],
    ['text that is not HTTP', 'secret\r\n\r\n', { method: undefined, path: undefined }],
  ] as const)
    it(`logs the client's address, the reason and at most the request line for ${what}`, async () => {
      const { port, lines } = await logging();
      await sendRaw(port, text);
      const [line = {}, ...more] = lines;
      assert.deepEqual(more, []);
      assert.match(String(line.client), /127\.0\.0\.1$/);
      assert.ok(typeof line.reason === 'string' && line.reason !== '');
      for (const [name, value] of Object.entries(expected)) assert.equal(line[name], value, name);
      assert.doesNotMatch(JSON.stringify(line), /secret|Cookie/);
    });

  it('logs one line a second with the number of those left out', () => {
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

  it('logs nothing for a connection without data', async () => {
    const { port, lines } = await logging({ headersTimeout: 20, requestTimeout: 20, connectionsCheckingInterval: 5 });
    assert.match(await peerOf(connect(port, '127.0.0.1')).closed, /^HTTP\/1\.1 408 /);
    assert.deepEqual(lines, []);
  });

  it('logs nothing and sends no second response if a client skips the rest of a body after its response', async () => {
    const { port, lines } = await logging();
    const { socket, closed } = speak(port, 'POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab');
    await once(socket, 'data');
    socket.end();
    assert.match(await closed, /^HTTP\/1\.1 200 (?!.*HTTP)/s);
    assert.deepEqual(lines, []);
  });
});
