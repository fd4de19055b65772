/** The client's address, host and prefix, and this server's public URL, with and without trusted proxies. */
import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { BlockList } from 'node:net';
import fc from 'fast-check';
import Koa from 'koa';
import request from 'supertest';
import { type AddressOptions, createAddresses, maskAddress } from '#http';
import { testServers } from '../support/serve.ts';
import { bodyOf, sendRaw } from '../support/wire/raw-client.ts';

type Headers = Readonly<Record<string, string>>;

/** The source addresses of supertest's connections. */
const loopback = ['127.0.0.0/8', '::1'];

/** Responds with the results of all functions of `Addresses`. */
function handlerOf(options: AddressOptions) {
  const addresses = createAddresses(options);
  const app = new Koa().use(({ req, response }) => {
    const read = Object.entries(addresses).map(([name, of]) => [name, of(req)]);
    response.body = Object.fromEntries(read);
  });
  return app.callback();
}

async function addressesOf(options: AddressOptions, headers: Headers): Promise<Record<string, unknown>> {
  const get = request(handlerOf(options)).get('/');
  return (await get.set({ Host: 'desk.test:8080', ...headers }).expect(200)).body;
}

const forwarded = {
  'x-forwarded-for': '203.0.113.7',
  'x-forwarded-host': 'api.example.com',
  'x-forwarded-proto': 'HTTPS',
  'x-forwarded-prefix': '/travel/',
};

const fromConnection = {
  trusts: false,
  publicHost: { scheme: 'http', host: 'desk.test:8080' },
  origin: 'http://desk.test:8080',
  configuredOrigin: '',
  host: 'desk.test',
  authority: 'desk.test:8080',
  scheme: 'http',
  forwardedFor: '127.0.0.1',
};

describe('createAddresses', () => {
  const servers = testServers();

  for (const trustedProxies of [[], ['10.0.0.0/8']])
    it(`ignores forwarded headers when the peer is not a trusted proxy of [${trustedProxies}]`, async () => {
      const sender = { network: '127.0.0.1/32', isShared: true };
      const expected = { ...fromConnection, client: '127.0.0.1', knownClient: '127.0.0.1', sender, prefix: '' };
      assert.deepEqual(await addressesOf({ trustedProxies }, forwarded), expected);
    });

  it('reads the forwarded headers of a trusted proxy', async () => {
    assert.deepEqual(await addressesOf({ trustedProxies: loopback }, forwarded), {
      trusts: true,
      publicHost: { scheme: 'https', host: 'api.example.com' },
      origin: 'https://api.example.com',
      configuredOrigin: '',
      host: 'api.example.com',
      authority: 'api.example.com',
      scheme: 'https',
      client: '203.0.113.7',
      knownClient: '203.0.113.7',
      forwardedFor: '203.0.113.7, 127.0.0.1',
      sender: { network: '203.0.113.7/32', isShared: false },
      prefix: '/travel',
    });
  });

  it('finds the client behind the trusted proxies of X-Forwarded-For', async () => {
    const trustedProxies = [...loopback, '10.0.0.0/8', '2001:db8:ffff::/48'];
    for (const [header, expected] of [
      ['203.0.113.7', '203.0.113.7'],
      ['198.51.100.1, 203.0.113.7', '203.0.113.7'],
      ['10.9.9.9, 203.0.113.7', '203.0.113.7'],
      ['198.51.100.1,203.0.113.7,10.0.0.1,10.0.0.2', '203.0.113.7'],
      ['10.0.0.1, 10.0.0.2', '10.0.0.1'],
      ['::ffff:203.0.113.7', '203.0.113.7'],
      ['::FFFF:203.0.113.7', '203.0.113.7'],
      ['0:0:0:0:0:ffff:cb00:7107', '203.0.113.7'],
      ['::ffff:7', '::ffff:7'],
      ['2001:db8::7', '2001:db8::7'],
      ['2001:0DB8:0:0:0:0:0:7', '2001:db8::7'],
      ['fe80::1%eth0', 'fe80::1%eth0'],
      ['2001:db8::7, 2001:db8:ffff::1', '2001:db8::7'],
      ['203.0.113.7:4711', '203.0.113.7'],
      ['[2001:db8::7]:4711', '2001:db8::7'],
      ['[2001:db8::7]', '2001:db8::7'],
      ['203.0.113.7, 10.0.0.1:80', '203.0.113.7'],
      ['unknown', '127.0.0.1'],
      ['203.0.113.7, <script>', '127.0.0.1'],
      ['203.0.113.7, unknown, 10.0.0.1', '10.0.0.1'],
      [',', '127.0.0.1'],
      ['203.0.113.7,', '127.0.0.1'],
    ] as const)
      assert.equal((await addressesOf({ trustedProxies }, { 'x-forwarded-for': header }))['client'], expected, header);
  });

  describe('sender', () => {
    const senderOf = (peer: string, forwardedFor?: string, trustedProxies: readonly string[] = ['10.0.0.0/8']) =>
      createAddresses({ trustedProxies }).sender({
        socket: { remoteAddress: peer },
        headers: forwardedFor === undefined ? {} : { 'x-forwarded-for': forwardedFor },
      } as unknown as IncomingMessage);

    for (const [what, peer, forwardedFor, network, isShared] of [
      ['a client', '203.0.113.7', undefined, '203.0.113.7/32', false],
      ['a client behind a trusted proxy', '10.0.0.1', '203.0.113.7', '203.0.113.7/32', false],
      [
        'a client that forges hops before a trusted proxy',
        '10.0.0.1',
        '192.0.2.1, 203.0.113.7',
        '203.0.113.7/32',
        false,
      ],
      ['a trusted proxy without X-Forwarded-For', '10.0.0.1', undefined, '10.0.0.1/32', true],
      ['a client that sends X-Forwarded-For', '203.0.113.7', '192.0.2.1', '203.0.113.7/32', false],
      ['a private client that sends X-Forwarded-For', '192.168.1.2', '192.0.2.1', '192.168.1.2/32', false],
      ['a proxy on a Unix socket', '', '192.0.2.1', '', true],
      ['loopback', '127.0.0.1', undefined, '127.0.0.1/32', true],
      ['IPv6 loopback', '::1', undefined, '::/64', true],
      ['loopback on a dual-stack socket', '::ffff:127.0.0.1', undefined, '127.0.0.1/32', true],
      ['an IPv6 address', '2001:db8:1:2:3:4:5:6', undefined, '2001:db8:1:2::/64', false],
      ['another address of the same network', '2001:DB8:1:2::f', undefined, '2001:db8:1:2::/64', false],
      ['an address with zeros in the middle', '2001:db8::7', undefined, '2001:db8::/64', false],
      ['an address with trailing zeros', '2001:db8:1::', undefined, '2001:db8:1::/64', false],
      ['an IPv6 address that ends with an IPv4 address', '64:ff9b::192.0.2.1', undefined, '64:ff9b::/64', false],
      ['an address with a zone', 'fe80::1%eth0', undefined, 'fe80::/64', false],
      ['an unknown address', '', undefined, '', false],
    ] as const)
      it(`returns the network of ${what} and whether it is shared`, () => {
        assert.deepEqual(senderOf(peer, forwardedFor), { network, isShared });
      });

    for (const [what, peer, forwardedFor, isShared] of [
      ['a client that sends X-Forwarded-For', '203.0.113.7', '192.0.2.1', false],
      ['an IPv6 client that sends X-Forwarded-For', '2001:db8::7', '192.0.2.1', false],
      ['a private address', '172.18.0.2', undefined, false],
      ['a private address that sends X-Forwarded-For', '172.18.0.2', '192.0.2.1', true],
      ['the same on a dual-stack socket', '::ffff:172.18.0.2', '192.0.2.1', true],
      ['a private IPv6 address that sends X-Forwarded-For', 'fd00::2', '192.0.2.1', true],
      ['a link-local address that sends X-Forwarded-For', 'fe80::1%eth0', '192.0.2.1', true],
    ] as const)
      it(`returns whether ${what} is shared if no proxies are trusted`, () => {
        assert.equal(senderOf(peer, forwardedFor, []).isShared, isShared);
      });
  });

  it('returns the host in lower case and without its port, also if a public URL is set', async () => {
    const options = { trustedProxies: loopback, publicUrl: 'https://public.example' };
    for (const [name, value, expected] of [
      ['host', 'API.Example.com', 'api.example.com'],
      ['host', 'api.example.com:8080', 'api.example.com'],
      ['host', 'api.example.com.', 'api.example.com'],
      ['host', 'api.example.com.:8080', 'api.example.com'],
      ['host', 'api.example.com:', 'api.example.com'],
      ['host', '[2001:DB8::7]:8080', '[2001:db8::7]'],
      ['host', '[::1]', '[::1]'],
      ['host', 'evil.example/path', ''],
      ['x-forwarded-host', 'Evil.example, api.example.com:443', 'api.example.com'],
      ['x-forwarded-host', 'evil.example/path', 'desk.test'],
    ] as const)
      assert.equal((await addressesOf(options, { [name]: value }))['host'], expected, value);
  });

  it('returns the authority as it was sent, and undefined for one that is not valid in a URL', async () => {
    for (const [name, value, expected] of [
      ['host', 'API.Example.com:8080', 'API.Example.com:8080'],
      ['host', '[2001:DB8::7]', '[2001:DB8::7]'],
      ['host', 'api.example.com:99999', undefined],
      ['host', '1.2.3.4.5', undefined],
      ['host', '[:::]', undefined],
      ['host', 'evil.example/path', undefined],
      ['x-forwarded-host', 'Evil.example, api.example.com:443', 'api.example.com:443'],
      ['x-forwarded-host', 'evil.example/path', 'desk.test:8080'],
    ] as const)
      assert.equal((await addressesOf({ trustedProxies: loopback }, { [name]: value }))['authority'], expected, value);
  });

  describe('origin', () => {
    const localAddress = /^http:\/\/127\.0\.0\.1:\d+$/;

    it('is the scheme and the host of the request, if they are valid', async () => {
      for (const [name, value, expected] of [
        ['host', 'api.example.com', 'http://api.example.com'],
        ['host', '[2001:db8::7]:8080', 'http://[2001:db8::7]:8080'],
        ['host', 'api.example.com:', 'http://api.example.com:'],
        ['x-forwarded-host', 'evil.example/path', 'http://desk.test:8080'],
        ['x-forwarded-host', 'evil.example, api.example.com', 'http://api.example.com'],
        ['x-forwarded-host', '', 'http://desk.test:8080'],
        ['x-forwarded-proto', 'https', 'https://desk.test:8080'],
        ['x-forwarded-proto', 'wss', 'https://desk.test:8080'],
        ['x-forwarded-proto', 'WS', 'http://desk.test:8080'],
        ['x-forwarded-proto', 'javascript', 'http://desk.test:8080'],
        ['x-forwarded-proto', 'https, http', 'http://desk.test:8080'],
      ] as const)
        assert.equal((await addressesOf({ trustedProxies: loopback }, { [name]: value }))['origin'], expected, value);
    });

    it('is the local address of the connection when Host is invalid', async () => {
      const invalid = ['/path', '?x', '#x', '\\x', ':port'].map((end) => `evil.example${end}`);
      for (const host of [...invalid, 'user@evil.example', '"><script>'])
        assert.match(String((await addressesOf({ trustedProxies: loopback }, { host }))['origin']), localAddress, host);
    });

    it('is the local address of the connection when an HTTP/1.0 client sends no Host', async () => {
      const { port } = await servers.http(handlerOf({}));
      assert.match(JSON.parse(bodyOf(await sendRaw(port, 'GET / HTTP/1.0\r\n\r\n'))).origin, localAddress);
    });

    it('is the public URL without its trailing slash, for any request', async () => {
      const options = { publicUrl: 'https://api.example.com/', trustedProxies: loopback };
      const { origin, configuredOrigin } = await addressesOf(options, { 'x-forwarded-host': 'other.example' });
      assert.deepEqual([origin, configuredOrigin], ['https://api.example.com', 'https://api.example.com']);
    });
  });

  it('joins the prefixes that several proxies stripped, each only if it is a plain path', async () => {
    for (const [header, expected] of [
      ['/travel', '/travel'],
      ['/travel/v1', '/travel/v1'],
      ['/travel,/v1', '/travel/v1'],
      ['/outer/, /travel/, /v1', '/outer/travel/v1'],
      ['/, /v1', '/v1'],
      ['//evil.example, /v1', '/v1'],
      ['/travel, v1', ''],
      ...['/', 'travel', '//evil.example', '/\\evil.example', '/travel//v1'].map((text) => [text, ''] as const),
      ...['https://evil.example', '/"><script>'].map((text) => [text, ''] as const),
    ] as const) {
      const { prefix } = await addressesOf({ trustedProxies: loopback }, { 'x-forwarded-prefix': header });
      assert.equal(prefix, expected, header);
    }
  });

  it('uses the path of the public URL as the prefix, unless a trusted proxy sends one', async () => {
    const options = { publicUrl: 'https://api.example.com/shop/', trustedProxies: loopback };
    for (const [header, expected] of [
      ['', '/shop'],
      ['/', '/shop'],
      ['/shop/v1/hotels', '/shop/v1/hotels'],
    ] as const) {
      const { origin, prefix } = await addressesOf(options, { 'x-forwarded-prefix': header });
      assert.deepEqual([origin, prefix], ['https://api.example.com', expected], header);
    }
  });

  describe('trustedProxies', () => {
    const from = (remoteAddress: string | undefined) => ({ socket: { remoteAddress } }) as unknown as IncomingMessage;

    it('accept IPv4 and IPv6 addresses and ranges', () => {
      for (const [trustedProxies, peer, expected] of [
        [[], '127.0.0.1', false],
        [['10.0.0.1'], '10.0.0.1', true],
        [['10.0.0.1'], '10.0.0.2', false],
        [['10.0.0.1'], '::ffff:10.0.0.1', true],
        [['::ffff:10.0.0.1'], '10.0.0.1', true],
        [['10.0.0.0/8'], '10.255.255.255', true],
        [['10.0.0.0/8'], '11.0.0.0', false],
        [['10.0.0.0/8', '192.0.2.7'], '192.0.2.7', true],
        [['0.0.0.0/0'], '203.0.113.7', true],
        [['::1'], '0:0:0:0:0:0:0:1', true],
        [['2001:db8::/32'], '2001:db8:1::7', true],
        [['2001:db8::/32'], '2001:db9::7', false],
        [['fe80::/10'], 'fe80::1%eth0', true],
        [['10.0.0.0/8'], undefined, false],
        [['10.0.0.0/8'], 'unknown', false],
        [['10.0.0.0/8'], '10.0.0.1:80', false],
      ] as const)
        assert.equal(createAddresses({ trustedProxies }).trusts(from(peer)), expected, `${trustedProxies}: ${peer}`);
    });

    it('reject any other entry and name it', () => {
      const ranges = ['', '33', '-1', '8.5', '0x8', '8/8'].map((bits) => `10.0.0.0/${bits}`);
      for (const entry of ['', 'loopback', '10.0.0', ...ranges, '::1/129']) {
        const message = `"${entry}" is neither an IP address nor a network such as 10.0.0.0/8`;
        assert.throws(() => createAddresses({ trustedProxies: [entry] }), { name: 'TypeError', message });
      }
    });
  });
});

describe('maskAddress', () => {
  for (const [address, ipv4, ipv6, expected] of [
    // From Envoy's tests of masked_remote_address.
    ['10.0.0.1', 32, 128, '10.0.0.1/32'],
    ['10.0.0.1', 16, 128, '10.0.0.0/16'],
    ['2001:abcd:ef01:2345:6789:abcd:ef01:234', 32, 128, '2001:abcd:ef01:2345:6789:abcd:ef01:234/128'],
    ['2001:abcd:ef01:2345:6789:abcd:ef01:234', 32, 64, '2001:abcd:ef01:2345::/64'],
    ['203.0.113.255', 25, 64, '203.0.113.128/25'],
    ['203.0.113.7', 0, 64, '0.0.0.0/0'],
    ['2001:db8:7:ffff::1', 32, 50, '2001:db8:7:c000::/50'],
    ['2001:DB8:0:0:1:0:0:1', 32, 128, '2001:db8::1:0:0:1/128'],
    ['2001:db8::7', 32, 0, '::/0'],
    ['::ffff:203.0.113.7', 24, 64, '203.0.113.0/24'],
    ['0:0:0:0:0:FFFF:cb00:7107', 32, 64, '203.0.113.7/32'],
    ['fe80::1%eth0', 32, 64, 'fe80::/64'],
    ['', 32, 64, ''],
  ] as const)
    it(`returns "${expected}" for "${address}" with ${ipv4} and ${ipv6} bits`, () =>
      assert.equal(maskAddress(address, { ipv4, ipv6 }), expected));

  for (const [type, address, length] of [
    ['ipv4', fc.ipV4(), fc.nat(32)],
    ['ipv6', fc.ipV6().filter((one) => !/^::ffff:/i.test(one)), fc.nat(128)],
  ] as const)
    it(`returns the same network for exactly the addresses that Node's BlockList puts into it (${type})`, () => {
      fc.assert(
        fc.property(address, address, length, (one, other, bits) => {
          const mask = (some: string) => maskAddress(some, { ipv4: bits, ipv6: bits });
          const [first = '', written] = mask(one).split('/');
          const network = new BlockList();
          network.addSubnet(one, bits, type);
          assert.deepEqual([written, network.check(first, type)], [String(bits), true]);
          assert.equal(mask(first), mask(one));
          assert.equal(mask(other) === mask(one), network.check(other, type));
        }),
      );
    });
});
