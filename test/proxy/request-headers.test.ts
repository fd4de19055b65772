/** Header hygiene over the wire: random headers, sent as bytes, against what a service and a client then see. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import Koa, { type Context } from 'koa';
import supertest from 'supertest';
import { forwardedHeaders } from '../../src/proxy/request-headers.ts';
import { authRecordOf, mappingOf, remote, startEdge } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';
import { rawRequest, sendRaw } from '../support/wire/raw-client.ts';

const hopByHop = [
  'keep-alive',
  'proxy-connection',
  'proxy-authorization',
  'te',
  'trailer',
  'upgrade',
  'http2-settings',
];

const anyCase = (text: string) =>
  fc
    .array(fc.boolean(), { minLength: text.length, maxLength: text.length })
    .map((upper) => [...text].map((letter, index) => (upper[index] ? letter.toUpperCase() : letter)).join(''));

const underscored = (text: string) =>
  fc
    .array(fc.boolean(), { minLength: text.length, maxLength: text.length })
    .map((swap) => [...text].map((letter, index) => (letter === '-' && swap[index] ? '_' : letter)).join(''));

const spellings = (...names: readonly string[]) =>
  fc
    .constantFrom(...names)
    .chain(underscored)
    .chain(anyCase);

const forged = spellings('x-travel-user', 'x-travel-role');
const ours = spellings('x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-forwarded-prefix', 'x-real-ip');
const otherwiseOurs = spellings('x-forwarded-port', 'x-forwarded-ssl', 'forwarded', 'x-original-url', 'proxy');
const connectionBound = spellings(...hopByHop);
const plainName = fc.constantFrom('x-a', 'x-b', 'accept', 'cookie', 'x_c', 'authorization', 'x-travel-users');
const headerName = fc.oneof(forged, ours, otherwiseOurs, connectionBound, plainName.chain(anyCase));
const forgedValue = 'forged';
const headerLines = fc.uniqueArray(headerName, { maxLength: 12, selector: (name) => name.toLowerCase() });

describe('headers on their way to a service', () => {
  const servers = testServers();

  async function setUp(options: Parameters<typeof startEdge>[1] = {}) {
    const upstream = await startUpstream(servers);
    const edge = await startEdge(servers, {
      mappings: [mappingOf({ bypassAuth: true })],
      authService: authRecordOf({ allowedAuthorizationHeaders: ['x-travel-user', 'x-travel-role'] }),
      authPort: () => ({ outcome: 'allow', headers: { 'x-travel-user': 'demo' } }),
      targets: { hotel: remote(upstream) },
      ...options,
    });
    return { upstream, edge };
  }

  it('lose what is of the connection, what it nominates and what only we may say, in any spelling', async () => {
    const { upstream, edge } = await setUp();
    const nominations = fc.subarray(['x-a', 'x-b', 'x_c', 'cookie', 'host', 'x-forwarded-for']);
    await fc.assert(
      fc.asyncProperty(headerLines, nominations, async (names, nominated) => {
        const before = upstream.reached.length;
        const lines = names.map((name) => `${name}: ${forgedValue}`);
        const connection = nominated.length === 0 ? [] : [`Connection: ${nominated.join(', ')}`];
        await sendRaw(edge.port, rawRequest('GET /v1/hotels/x', [...lines, ...connection]));
        const reached = upstream.reached[before];
        assert.ok(reached !== undefined);
        const crossed = reached.names.filter((name) => reached.headers[name] === forgedValue);
        const expected = names
          .map((name) => name.toLowerCase())
          .filter((name) => ['x-a', 'x-b', 'accept', 'cookie', 'x_c', 'authorization', 'x-travel-users'].includes(name))
          .filter((name) => !nominated.includes(name));
        assert.deepEqual(crossed.sort(), expected.sort());
        assert.equal(reached.headers['x-forwarded-for'], '127.0.0.1');
        assert.equal(reached.headers['x-forwarded-proto'], 'http');
        assert.equal(reached.headers['x-forwarded-host'], 'front.example');
        assert.equal(reached.headers['x-forwarded-prefix'], '/v1/hotels');
        assert.equal(reached.headers.host, upstream.origin.slice('http://'.length));
        assert.equal(new Set(reached.names).size, reached.names.length, 'a header came twice');
      }),
      { numRuns: 60 },
    );
  });

  it('say whom the auth service named, though the client says so too, twice and nominated', async () => {
    const { upstream, edge } = await setUp({ mappings: [mappingOf()] });
    const lies = ['X-Travel-User: admin', 'x-travel-user: root', 'X_Travel_User: admin', 'X-Travel-Role: root'];
    await sendRaw(
      edge.port,
      rawRequest('GET /v1/hotels', [...lies, 'Connection: x-travel-user, x-request-id, x-forwarded-for']),
    );
    const { headers, names } = upstream.only();
    assert.equal(headers['x-travel-user'], 'demo');
    assert.deepEqual(
      names.filter((name) => name.includes('travel')),
      ['x-travel-user'],
    );
    assert.equal(headers['x-forwarded-for'], '127.0.0.1');
    assert.match(headers['x-request-id'] as string, /^[\w-]{36}$/);
  });

  it('say it too where the name of the auth service has an underscore, to which CGI turns every dash', async () => {
    const { upstream, edge } = await setUp({
      mappings: [mappingOf()],
      authService: authRecordOf({ allowedAuthorizationHeaders: ['x_travel-user'] }),
      authPort: () => ({ outcome: 'allow', headers: { 'x_travel-user': 'demo' } }),
    });
    const lies = ['X-Travel-User: admin', 'X_Travel_User: admin', 'X-Travel_User: admin', 'X_Travel-User: admin'];
    await sendRaw(edge.port, rawRequest('GET /v1/hotels', lies));
    const { headers, names } = upstream.only();
    assert.equal(headers['x_travel-user'], 'demo');
    assert.deepEqual(
      names.filter((name) => name.includes('travel')),
      ['x_travel-user'],
    );
  });

  it('carry the request id that the client reads, its own if it is readable', async () => {
    const { upstream, edge } = await setUp();
    await supertest(edge.origin).get('/v1/hotels').set('X-Request-Id', 'abc-1').expect('X-Request-Id', 'abc-1');
    assert.equal(upstream.only().headers['x-request-id'], 'abc-1');
    const made = await supertest(edge.origin).get('/v1/hotels').set('X-Request-Id', 'a b<script>');
    assert.equal(upstream.reached[1]?.headers['x-request-id'], made.headers['x-request-id']);
    assert.match(made.headers['x-request-id'] as string, /^[\w-]{36}$/);
  });

  it('keep the history that a trusted proxy tells, and add the proxy to it', async () => {
    const { upstream, edge } = await setUp({ addresses: { trustedProxies: ['127.0.0.1'] } });
    await supertest(edge.origin)
      .get('/v1/hotels')
      .set('X-Forwarded-For', '203.0.113.7')
      .set('X-Forwarded-Proto', 'https')
      .set('X-Forwarded-Host', 'travel.example')
      .set('X-Forwarded-Prefix', '/travel');
    const { headers } = upstream.only();
    assert.equal(headers['x-forwarded-for'], '203.0.113.7, 127.0.0.1');
    assert.equal(headers['x-forwarded-proto'], 'https');
    assert.equal(headers['x-forwarded-host'], 'travel.example');
    assert.equal(headers['x-forwarded-prefix'], '/travel/v1/hotels');
  });

  it('tell of the public URL where one is set, its path as a part of the prefix', async () => {
    const { upstream, edge } = await setUp({ addresses: { publicUrl: 'https://travel.example:8443/api' } });
    await supertest(edge.origin).get('/v1/hotels');
    const { headers } = upstream.only();
    assert.equal(headers['x-forwarded-proto'], 'https');
    assert.equal(headers['x-forwarded-host'], 'travel.example:8443');
    assert.equal(headers['x-forwarded-prefix'], '/api/v1/hotels');
  });

  it('have no prefix to tell of when the path is left alone', async () => {
    const { upstream, edge } = await setUp({ mappings: [mappingOf({ rewrite: '', bypassAuth: true })] });
    await supertest(edge.origin).get('/v1/hotels');
    assert.equal(upstream.only().headers['x-forwarded-prefix'], undefined);
  });

  it('write an IPv4 address plainly, though it came over a socket for both families', () => {
    const req = { headers: {}, socket: { remoteAddress: '::ffff:203.0.113.7' }, url: '/' };
    const ctx = new Koa().createContext(req as never, {} as never) as Context;
    const [name, value] = forwardedHeaders(ctx, { scheme: 'http', host: 'a', path: '' }, '');
    assert.deepEqual([name, value], ['x-forwarded-for', '203.0.113.7']);
  });

  it('keep the bytes of a value that is not ASCII', async () => {
    const { upstream, edge } = await setUp();
    await sendRaw(edge.port, rawRequest('GET /v1/hotels', ['X-A: Zo\u00c3\u00ab']));
    assert.equal(upstream.only().headers['x-a'], 'Zo\u00c3\u00ab');
  });
});

describe('headers on their way to the client', () => {
  const servers = testServers();

  async function answering(head: readonly string[], options: Parameters<typeof startEdge>[1] = {}) {
    const upstream = await servers.tcp((socket) => {
      socket.once('data', () => socket.end(['HTTP/1.1 200 OK', ...head, '', 'hello'].join('\r\n'), 'latin1'));
    });
    return startEdge(servers, { targets: { hotel: remote(upstream) }, ...options });
  }

  it('lose what is of the connection and what it nominates', async () => {
    const bound = spellings('keep-alive', 'proxy-connection', 'proxy-authenticate', 'te', 'upgrade');
    // The answer side belongs to a service of the operator's: no CGI reads it, so spelling with `_` is another header.
    const dashed = bound.map((name) => name.replaceAll('_', '-'));
    const names = fc.uniqueArray(fc.oneof(dashed, plainName), { selector: (name) => name.toLowerCase() });
    let head: readonly string[] = [];
    const upstream = await servers.tcp((socket) => {
      socket.once('data', () => socket.end(['HTTP/1.1 200 OK', ...head, '', 'hello'].join('\r\n'), 'latin1'));
    });
    const edge = await startEdge(servers, { targets: { hotel: remote(upstream) } });
    await fc.assert(
      fc.asyncProperty(names, fc.subarray(['x-a', 'x-b', 'x_c', 'cookie']), async (sent, nominated) => {
        head = [...sent.map((name) => `${name}: told`), `Connection: ${['close', ...nominated].join(', ')}`];
        const { headers } = await supertest(edge.origin).get('/v1/hotels').expect(200, 'hello');
        const crossed = Object.keys(headers).filter((name) => headers[name] === 'told');
        const expected = sent
          .map((name) => name.toLowerCase())
          .filter((name) => ['x-a', 'x-b', 'accept', 'cookie', 'x_c', 'authorization', 'x-travel-users'].includes(name))
          .filter((name) => !nominated.includes(name));
        assert.deepEqual(crossed.sort(), expected.sort());
      }),
      { numRuns: 40 },
    );
  });

  it('keep every cookie apart', async () => {
    const edge = await answering(['Set-Cookie: a=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT', 'Set-Cookie: b=2']);
    const { headers } = await supertest(edge.origin).get('/v1/hotels');
    assert.deepEqual(headers['set-cookie'], ['a=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT', 'b=2']);
  });

  it('join the cookies and the Vary of a host app instead of losing either', async () => {
    const edge = await answering(['Set-Cookie: b=2', 'Vary: Accept-Encoding', 'Vary: "odd"'], {
      host: [
        (ctx, next) => {
          ctx.set('Set-Cookie', 'a=1');
          ctx.vary('Origin');
          return next();
        },
      ],
    });
    const { headers } = await supertest(edge.origin).get('/v1/hotels').expect(200);
    assert.deepEqual(headers['set-cookie'], ['a=1', 'b=2']);
    assert.equal(headers['vary'], 'Origin, Accept-Encoding, "odd"');
  });

  it('keep what the gateway said itself', async () => {
    const edge = await answering(['X-Request-Id: theirs', 'X-Content-Type-Options: none']);
    const { headers } = await supertest(edge.origin).get('/v1/hotels').set('X-Request-Id', 'ours');
    assert.equal(headers['x-request-id'], 'ours');
    assert.equal(headers['x-content-type-options'], 'nosniff');
  });

  it('keep the encoding and the length of a body that is passed on as it is', async () => {
    const edge = await answering(['Content-Encoding: x-odd', 'Content-Length: 5', 'ETag: "1"', 'Content-Type: a/b']);
    const answer = await sendRaw(edge.port, rawRequest('GET /v1/hotels'));
    assert.match(answer, /\r\ncontent-encoding: x-odd\r\n/i);
    assert.match(answer, /\r\ncontent-length: 5\r\n/i);
    assert.match(answer, /\r\netag: "1"\r\n/i);
    assert.match(answer, /\r\ncontent-type: a\/b\r\n/i);
    assert.match(answer, /\r\n\r\nhello$/);
  });

  it('keep the bytes of a value that is not ASCII', async () => {
    const edge = await answering(['X-A: Zo\u00c3\u00ab', 'Content-Length: 5']);
    assert.match(await sendRaw(edge.port, rawRequest('GET /v1/hotels')), /\r\nX-A: Zo\u00c3\u00ab\r\n/);
  });
});
