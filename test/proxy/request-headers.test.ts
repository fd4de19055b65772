/** Header filtering in both directions: compares random headers sent over the wire with those that arrive. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import Koa, { type Context } from 'koa';
import supertest from 'supertest';
import { addForwardedHeaders } from '../../src/proxy/request-headers.ts';
import { authRecordOf, type EdgeOptions, labelled, limitRecordOf, mappingOf, startEdge } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';
import { rawRequest, sendRaw } from '../support/wire/raw-client.ts';

const servers = testServers();

/** Applies `change` to random letters of `text`. */
const changedAtRandom = (text: string, change: (letter: string) => string) =>
  fc
    .array(fc.boolean(), { minLength: text.length, maxLength: text.length })
    .map((changes) => [...text].map((letter, index) => (changes[index] ? change(letter) : letter)).join(''));

const anyCase = (text: string) => changedAtRandom(text, (letter) => letter.toUpperCase());

const spellings = (...names: readonly string[]) =>
  fc
    .constantFrom(...names)
    .chain((name) =>
      fc.constantFrom(...'_.!').chain((mark) => changedAtRandom(name, (letter) => (letter === '-' ? mark : letter))),
    )
    .chain(anyCase);

const plain = ['x-a', 'x-b', 'accept', 'cookie', 'x_c', 'authorization', 'x-travel-users'];
const plainName = fc.constantFrom(...plain).chain(anyCase);
const headerName = fc.oneof(
  spellings('x-travel-user', 'x-travel-role'),
  spellings('x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-forwarded-prefix', 'x-real-ip'),
  spellings('true-client-ip', 'x-client-ip', 'x-scheme'),
  spellings('x-forwarded-port', 'x-forwarded-ssl', 'forwarded', 'x-original-url', 'proxy'),
  spellings('keep-alive', 'proxy-connection', 'proxy-authorization', 'te', 'trailer', 'upgrade', 'http2-settings'),
  plainName,
);
const unique = { maxLength: 12, selector: (name: string) => name.toLowerCase() };

/** Returns the sent headers that should arrive: end-to-end headers that Connection does not nominate. */
const expectedOf = (sent: readonly string[], nominated: readonly string[]) =>
  sent
    .map((name) => name.toLowerCase())
    .filter((name) => plain.includes(name) && !nominated.includes(name))
    .sort();

const utf8 = 'X-A: Zo\u00c3\u00ab';

describe('request headers for a service', () => {
  async function setUp(options: EdgeOptions = {}) {
    const upstream = await startUpstream(servers);
    const edge = await startEdge(servers, {
      mapping: { bypassAuth: true },
      authService: authRecordOf({ allowedAuthorizationHeaders: ['x-travel-user', 'x-travel-role'] }),
      authPort: () => ({ outcome: 'allow', headers: { 'x-travel-user': 'demo' } }),
      upstream,
      ...options,
    });
    return { upstream, port: edge.port, get: () => supertest(edge.origin).get('/v1/hotels') };
  }

  it('exclude hop-by-hop, nominated and gateway-owned headers, in any spelling', async () => {
    const { upstream, port } = await setUp();
    const nominations = fc.subarray(['x-a', 'x-b', 'x_c', 'cookie', 'content-length']);
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(headerName, unique), nominations, async (names, nominated) => {
        const before = upstream.reached.length;
        const connection = nominated.length === 0 ? [] : [`Connection: ${nominated.join(', ')}`];
        await sendRaw(port, rawRequest('GET /v1/hotels/x', [...names.map((name) => `${name}: forged`), ...connection]));
        const { headers, names: received } = upstream.reached[before] ?? assert.fail('the request did not arrive');
        assert.deepEqual(received.filter((name) => headers[name] === 'forged').sort(), expectedOf(names, nominated));
        assert.equal(headers['x-forwarded-for'], '127.0.0.1');
        assert.equal(headers['x-forwarded-proto'], 'http');
        assert.equal(headers['x-forwarded-host'], 'front.example');
        assert.equal(headers['x-forwarded-prefix'], '/v1/hotels');
        assert.equal(headers.host, 'front.example');
        assert.equal(new Set(received).size, received.length, 'a header came twice');
      }),
      { numRuns: 60 },
    );
  });

  const spelled = ['SOAPAction', 'X-CamelCase', 'x-lower', 'Content-Type', 'X-Forwarded-For'];
  for (const [what, preserveHeaderCase, expected] of [
    ['in lower case', false, spelled.map((name) => name.toLowerCase())],
    ['as the client spells them, if the mapping says so', true, spelled],
  ] as const)
    it(`have names ${what}`, async () => {
      const arrived: string[] = [];
      const upstream = await servers.http(({ rawHeaders }, response) => {
        arrived.push(...rawHeaders);
        response.end();
      });
      const requestHeaders = { add: [{ name: 'x-added', value: 'a', append: true }], remove: ['x-gone'] };
      const { port } = await startEdge(servers, {
        mapping: { bypassAuth: true, preserveHeaderCase, requestHeaders },
        upstream,
      });
      const sent = [...spelled, 'X-CAMELCASE', 'X-Gone'].map((name) => `${name}: 1`);
      await sendRaw(port, rawRequest('GET /v1/hotels', sent));
      const names = arrived.filter((_, index) => index % 2 === 0);
      assert.deepEqual(
        names.filter((name) => spelled.some((one) => one.toLowerCase() === name.toLowerCase())).sort(),
        [...expected].sort(),
      );
      const valueAt = (name: string) => arrived[names.indexOf(name) * 2 + 1];
      assert.deepEqual([valueAt(expected[1] ?? ''), valueAt(expected[4] ?? '')], ['1, 1', '127.0.0.1']);
      assert.ok(names.includes('x-added'));
      assert.ok(!names.some((name) => /gone/i.test(name)));
    });

  /** CGI turns every dash into an underscore, PHP also turns every dot into one, and lighttpd every other character. */
  for (const header of ['x-travel-user', 'x_travel-user', 'x.travel-user'])
    it(`contain the ${header} of the auth service, whatever spellings the client sends`, async () => {
      const { upstream, port } = await setUp({
        mapping: {},
        authService: authRecordOf({ allowedAuthorizationHeaders: [header, 'x-travel-role'] }),
        authPort: () => ({ outcome: 'allow', headers: { [header]: 'demo' } }),
      });
      const names = [
        'X-Travel-User',
        'x-travel-user',
        'X_Travel_User',
        'X-Travel_User',
        'X_Travel-User',
        'X.Travel.User',
        'X!Travel~User',
        'X-Travel-Role',
      ];
      const lies = names.map((name) => `${name}: admin`);
      await sendRaw(port, rawRequest('GET /v1/hotels', [...lies, 'Connection: x-request-id']));
      const { headers, names: received } = upstream.only();
      assert.equal(headers[header], 'demo');
      assert.deepEqual(
        received.filter((name) => name.includes('travel')),
        [header],
      );
      assert.equal(headers['x-forwarded-for'], '127.0.0.1');
      assert.match(String(headers['x-request-id']), /^[\w-]{36}$/);
    });

  const condition = { name: 'x-key', match: { kind: 'present' } } as const;
  const readers: Readonly<Record<string, EdgeOptions>> = {
    'a limit counts': {
      mapping: { bypassAuth: true, labels: { gateway: labelled('x-key') } },
      rateLimitService: limitRecordOf(),
      limiter: { shouldRateLimit: () => ({ overallCode: 'OK', statuses: [] }) },
    },
    'a condition reads': {
      mappings: [mappingOf({ bypassAuth: true }), mappingOf({ name: 'keyed', prefix: '/v1', headers: [condition] })],
    },
    'an auth service gets': { authService: authRecordOf({ allowedRequestHeaders: ['x-key'] }) },
    'a mapping removes': { mapping: { bypassAuth: true, requestHeaders: { add: [], remove: ['x-key', 'x_other'] } } },
    'a mapping replaces': {
      mapping: {
        bypassAuth: true,
        requestHeaders: { add: [{ name: 'x-key', value: '1', append: false }], remove: [] },
      },
    },
  };
  for (const [what, options] of Object.entries(readers))
    it(`contain a header that ${what} in no other spelling`, async () => {
      const { upstream, port } = await setUp(options);
      await sendRaw(
        port,
        rawRequest('GET /v1/hotels', ['X_Key: 1', 'X.Key: 1', 'X_Keys: 1', 'X-Other: 1', 'X-Key: 1']),
      );
      const received = upstream.only().names.filter((name) => /^x.(?:key|other)/.test(name));
      const isRemoved = what === 'a mapping removes';
      assert.deepEqual(received.sort(), ['x-key', 'x-other', 'x_keys'].slice(isRemoved ? 1 : 0));
    });

  it('contain the request id that the client receives, which is its own if that is valid', async () => {
    const { upstream, get } = await setUp();
    await get().set('X-Request-Id', 'abc-1').expect('X-Request-Id', 'abc-1');
    const made = await get().set('X-Request-Id', 'a b<script>');
    const [first, second] = upstream.reached.map(({ headers }) => String(headers['x-request-id']));
    assert.deepEqual([first, second], ['abc-1', made.headers['x-request-id']]);
    assert.match(String(second), /^[\w-]{36}$/);
  });

  function checkForwarded(
    what: string,
    options: EdgeOptions,
    sent: Record<string, string>,
    expected: Readonly<Record<string, unknown>>,
  ) {
    it(what, async () => {
      const { upstream, get } = await setUp(options);
      await get().set(sent);
      const { headers } = upstream.only();
      for (const [name, value] of Object.entries(expected)) assert.equal(headers[`x-forwarded-${name}`], value, name);
    });
  }

  const fromProxy = {
    'X-Forwarded-For': '203.0.113.7',
    'X-Forwarded-Proto': 'https',
    'X-Forwarded-Host': 'travel.example',
    'X-Forwarded-Prefix': '/travel',
  };
  checkForwarded(
    'extend the X-Forwarded headers of a trusted proxy',
    { addresses: { trustedProxies: ['127.0.0.1'] } },
    fromProxy,
    { for: '203.0.113.7, 127.0.0.1', proto: 'https', host: 'travel.example', prefix: '/travel/v1/hotels' },
  );
  checkForwarded(
    'contain the scheme, the host and the path of the public URL if one is set',
    { addresses: { publicUrl: 'https://travel.example:8443/api' } },
    {},
    { proto: 'https', host: 'travel.example:8443', prefix: '/api/v1/hotels' },
  );
  const unchanged = { mapping: { rewrite: '', bypassAuth: true } };
  checkForwarded('contain no prefix when the path is not rewritten', unchanged, {}, { prefix: undefined });

  it('contain a plain IPv4 address for an IPv4 client of a dual-stack socket', () => {
    const req = { headers: {}, socket: { remoteAddress: '::ffff:203.0.113.7' }, url: '/' };
    const ctx = new Koa().createContext(req as never, {} as never) as Context;
    const list: string[] = [];
    addForwardedHeaders(list, ctx, { scheme: 'http', host: 'a', path: '' }, '');
    assert.deepEqual(list.slice(0, 2), ['x-forwarded-for', '203.0.113.7']);
  });

  it('preserve the bytes of a non-ASCII value', async () => {
    const { upstream, port } = await setUp();
    await sendRaw(port, rawRequest('GET /v1/hotels', [utf8]));
    assert.equal(upstream.only().headers['x-a'], 'Zo\u00c3\u00ab');
  });
});

describe('response headers for the client', () => {
  /** The service responds with the lines that `head` returns. */
  async function startResponding(head: () => readonly string[], options: EdgeOptions = {}) {
    const upstream = await servers.tcp((socket) => {
      socket.once('data', () => socket.end(['HTTP/1.1 200 OK', ...head(), '', 'hello'].join('\r\n'), 'latin1'));
    });
    const { origin, port } = await startEdge(servers, { upstream, ...options });
    return { get: () => supertest(origin).get('/v1/hotels').expect(200, 'hello'), port };
  }

  it('exclude hop-by-hop and nominated headers', async () => {
    const bound = spellings('keep-alive', 'proxy-connection', 'proxy-authenticate', 'te', 'upgrade');
    // CGI does not read responses, so a name with another character than a dash is a different header here.
    const dashed = bound.map((name) => name.replace(/[_.!]/g, '-'));
    const names = fc.uniqueArray(fc.oneof(dashed, plainName), unique);
    let head: readonly string[] = [];
    const { get } = await startResponding(() => head);
    await fc.assert(
      fc.asyncProperty(names, fc.subarray(['x-a', 'x-b', 'x_c', 'cookie']), async (sent, nominated) => {
        head = [...sent.map((name) => `${name}: sent`), `Connection: ${['close', ...nominated].join(', ')}`];
        const { headers } = await get();
        const crossed = Object.keys(headers).filter((name) => headers[name] === 'sent');
        assert.deepEqual(crossed.sort(), expectedOf(sent, nominated));
      }),
      { numRuns: 40 },
    );
  });

  it('are merged with the cookies, the Vary and the Via of a host app', async () => {
    const dated = 'b=2; Expires=Wed, 21 Oct 2026 07:28:00 GMT';
    const { get } = await startResponding(
      () => [`Set-Cookie: ${dated}`, 'Set-Cookie: c=3', 'Vary: Accept-Encoding', 'Vary: "odd"', 'Via: 1.1 cache'],
      {
        host: [
          (ctx, next) => {
            ctx.set('Set-Cookie', 'a=1');
            ctx.vary('Origin');
            ctx.set('Via', '1.1 host');
            return next();
          },
        ],
      },
    );
    const { headers } = await get();
    assert.deepEqual(headers['set-cookie'], ['a=1', dated, 'c=3']);
    assert.equal(headers['vary'], 'Origin, Accept-Encoding, "odd"');
    assert.equal(headers['via'], '1.1 host, 1.1 cache, 1.1 frontdesk');
  });

  it('contain the X-Request-Id and X-Content-Type-Options of the service', async () => {
    const { get } = await startResponding(() => ['X-Request-Id: theirs', 'X-Content-Type-Options: none']);
    await get().set('X-Request-Id', 'ours').expect('X-Request-Id', 'theirs').expect('X-Content-Type-Options', 'none');
    const plain = await (await startResponding(() => []))
      .get()
      .set('X-Request-Id', 'ours')
      .expect('X-Request-Id', 'ours');
    assert.equal(plain.headers['x-content-type-options'], undefined);
  });

  it('preserve the encoding, the length and the bytes of a forwarded response', async () => {
    const lines = ['Content-Encoding: x-odd', 'Content-Length: 5', 'ETag: "1"', 'Content-Type: a/b', utf8];
    const { port } = await startResponding(() => lines);
    const response = await sendRaw(port, rawRequest('GET /v1/hotels'));
    for (const line of lines) assert.ok(response.toLowerCase().includes(`\r\n${line.toLowerCase()}\r\n`), line);
    assert.match(response, /\r\nX-A: Zo\u00c3\u00ab\r\n[\s\S]*\r\n\r\nhello$/);
  });
});
