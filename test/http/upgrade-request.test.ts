import assert from 'node:assert/strict';
import { testServers } from '../support/serve.ts';
import { speak } from '../support/wire/peer.ts';
import { echo, switchingServer } from './switching-server.ts';

const http = ['GET', 'Host: a', 'Connection: Upgrade', 'Upgrade: websocket'];

describe('a server that may switch protocols', () => {
  const servers = testServers();
  const serving = switchingServer(servers);

  describe('leaves to HTTP, body and connection and all,', () => {
    function check(what: string, request: readonly string[], expected: string, body = '') {
      it(what, async () => {
        const [method, ...headers] = request;
        const text = [`${method} /first HTTP/1.1`, ...headers, '', body].join('\r\n');
        const client = speak(await serving(echo), text);
        await client.until(`ordinary ${expected}`);
        client.socket.end('GET /next HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
        assert.match(await client.closed, /ordinary \/next $/);
      });
    }

    const asks = http.slice(0, -1);
    const chunked = 'Transfer-Encoding: chunked';
    check('a protocol that is not allowed', [...asks, 'Upgrade: h2c'], '/first');
    check('an upgrade with a body', [...http, 'Content-Length: 3'], '/first abc', 'abc');
    check('an upgrade with a body in chunks', [...http, chunked], '/first abc', '3\r\nabc\r\n0\r\n\r\n');
    check('a header that the connection does not name', ['GET', 'Host: a', 'Upgrade: websocket'], '/first');
    check(
      'the first request of a client that would rather have HTTP/2',
      ['POST', 'Host: a', 'Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AA', chunked],
      '/first abc',
      '3\r\nabc\r\n0\r\n\r\n',
    );
  });

  it('switches no connection of HTTP/1.0', async () => {
    const answer = await speak(
      await serving(echo),
      'GET /old HTTP/1.0\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
    ).closed;
    assert.match(answer, /^HTTP\/1\.1 200 [\s\S]*ordinary \/old $/);
  });

  it('answers 400 without Host, as for any request', async () => {
    const port = await serving(echo);
    const answer = await speak(port, 'GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n').closed;
    assert.match(answer, /^HTTP\/1\.1 400 /);
  });
});
