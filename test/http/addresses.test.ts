import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import fc from 'fast-check';
import Koa from 'koa';
import request from 'supertest';
import { type AddressOptions, createAddresses } from '#http';
import { bodyOf, withServer } from './raw-exchange.ts';

type Headers = Readonly<Record<string, string>>;

/** What supertest's own connection comes from. */
const loopback = ['127.0.0.0/8', '::1'];

function tellAll(options: AddressOptions) {
  const addresses = createAddresses(options);
  const app = new Koa();
  app.use(({ req, response }) => {
    response.body = {
      trusts: addresses.trusts(req),
      origin: addresses.origin(req),
      host: addresses.host(req),
      scheme: addresses.scheme(req),
      client: addresses.client(req),
      prefix: addresses.prefix(req),
    };
  });
  return app.callback();
}

async function told(options: AddressOptions, headers: Headers) {
  const { body } = await request(tellAll(options))
    .get('/')
    .set({ Host: 'desk.test:8080', ...headers })
    .expect(200);
  return body as Record<string, unknown>;
}

describe('createAddresses', () => {
  it('believes nothing forwarded when no proxy is trusted', async () => {
    assert.deepEqual(
      await told(
        {},
        {
          'x-forwarded-for': '203.0.113.7',
          'x-forwarded-host': 'evil.example',
          'x-forwarded-proto': 'https',
          'x-forwarded-prefix': '/evil',
        },
      ),
      {
        trusts: false,
        origin: 'http://desk.test:8080',
        host: 'desk.test',
        scheme: 'http',
        client: '127.0.0.1',
        prefix: '',
      },
    );
  });

  it('believes nothing forwarded when the peer is not among the trusted proxies', async () => {
    const { origin, client, trusts } = await told(
      { trustedProxies: ['10.0.0.0/8'] },
      { 'x-forwarded-for': '203.0.113.7', 'x-forwarded-host': 'evil.example' },
    );
    assert.deepEqual(
      { origin, client, trusts },
      { origin: 'http://desk.test:8080', client: '127.0.0.1', trusts: false },
    );
  });

  it('believes a trusted proxy', async () => {
    assert.deepEqual(
      await told(
        { trustedProxies: loopback },
        {
          'x-forwarded-for': '203.0.113.7',
          'x-forwarded-host': 'api.example.com',
          'x-forwarded-proto': 'HTTPS',
          'x-forwarded-prefix': '/travel/',
        },
      ),
      {
        trusts: true,
        origin: 'https://api.example.com',
        host: 'api.example.com',
        scheme: 'https',
        client: '203.0.113.7',
        prefix: '/travel',
      },
    );
  });

  describe('client', () => {
    function check(forwardedFor: string, expected: string) {
      it(`is ${expected} when trusted proxies hand on "${forwardedFor}"`, async () => {
        const trustedProxies = [...loopback, '10.0.0.0/8', '2001:db8:ffff::/48'];
        const { client } = await told({ trustedProxies }, { 'x-forwarded-for': forwardedFor });
        assert.equal(client, expected);
      });
    }

    check('203.0.113.7', '203.0.113.7');
    check('198.51.100.1, 203.0.113.7', '203.0.113.7');
    check('10.9.9.9, 203.0.113.7', '203.0.113.7');
    check('198.51.100.1, 203.0.113.7, 10.0.0.1', '203.0.113.7');
    check('198.51.100.1,203.0.113.7,10.0.0.1,10.0.0.2', '203.0.113.7');
    check('10.0.0.1, 10.0.0.2', '10.0.0.1');
    check('::ffff:203.0.113.7', '203.0.113.7');
    check('2001:db8::7', '2001:db8::7');
    check('2001:db8::7, 2001:db8:ffff::1', '2001:db8::7');
    check('203.0.113.7:4711', '203.0.113.7');
    check('[2001:db8::7]:4711', '2001:db8::7');
    check('[2001:db8::7]', '2001:db8::7');
    check('203.0.113.7, 10.0.0.1:80', '203.0.113.7');
    check('unknown', '127.0.0.1');
    check('203.0.113.7, <script>', '127.0.0.1');
    check('203.0.113.7, unknown, 10.0.0.1', '10.0.0.1');
    check(',', '127.0.0.1');
    check('203.0.113.7,', '127.0.0.1');
  });

  describe('host', () => {
    function check(headers: Headers, expected: string, trustedProxies = loopback) {
      it(`is ${expected || 'nothing'} for ${JSON.stringify(headers)}`, async () => {
        const { host } = await told({ trustedProxies, publicUrl: 'https://public.example' }, headers);
        assert.equal(host, expected);
      });
    }

    check({ host: 'API.Example.com' }, 'api.example.com');
    check({ host: 'api.example.com:8080' }, 'api.example.com');
    check({ host: 'api.example.com.' }, 'api.example.com');
    check({ host: 'api.example.com.:8080' }, 'api.example.com');
    check({ host: '[2001:DB8::7]:8080' }, '[2001:db8::7]');
    check({ host: '[::1]' }, '[::1]');
    check({ host: 'evil.example/path' }, '');
    check({ 'x-forwarded-host': 'Evil.example, api.example.com:443' }, 'api.example.com');
    check({ 'x-forwarded-host': 'evil.example/path' }, 'desk.test');
    check({ 'x-forwarded-host': 'evil.example' }, 'desk.test', []);
  });

  describe('origin', () => {
    function check(headers: Headers, expected: string | RegExp) {
      it(`is ${expected} for ${JSON.stringify(headers)}`, async () => {
        const { origin } = await told({ trustedProxies: loopback }, headers);
        if (typeof expected === 'string') assert.equal(origin, expected);
        else assert.match(String(origin), expected);
      });
    }

    const ownAddress = /^http:\/\/127\.0\.0\.1:\d+$/;
    check({ host: 'api.example.com' }, 'http://api.example.com');
    check({ host: '[2001:db8::7]:8080' }, 'http://[2001:db8::7]:8080');
    check({ host: 'evil.example/path' }, ownAddress);
    check({ host: 'user@evil.example' }, ownAddress);
    check({ host: 'evil.example?x' }, ownAddress);
    check({ host: 'evil.example#x' }, ownAddress);
    check({ host: 'evil.example\\x' }, ownAddress);
    check({ host: '"><script>' }, ownAddress);
    check({ host: 'api.example.com:port' }, ownAddress);
    check({ 'x-forwarded-host': 'evil.example/path' }, 'http://desk.test:8080');
    check({ 'x-forwarded-host': 'evil.example, api.example.com' }, 'http://api.example.com');
    check({ 'x-forwarded-host': '' }, 'http://desk.test:8080');
    check({ 'x-forwarded-proto': 'https' }, 'https://desk.test:8080');
    check({ 'x-forwarded-proto': 'javascript' }, 'http://desk.test:8080');
    check({ 'x-forwarded-proto': 'https, http' }, 'http://desk.test:8080');

    it('is the public URL, whatever the request says, without the slash at its end', async () => {
      const { origin } = await told(
        { publicUrl: 'https://api.example.com/', trustedProxies: loopback },
        { 'x-forwarded-host': 'other.example' },
      );
      assert.equal(origin, 'https://api.example.com');
    });

    it('is the address of our own end when an HTTP/1.0 client sends no Host', async () => {
      await withServer({ handler: tellAll({}) }, async ({ send }) => {
        const { origin } = JSON.parse(bodyOf(await send('GET / HTTP/1.0\r\n\r\n'))) as { origin: string };
        assert.match(origin, /^http:\/\/127\.0\.0\.1:\d+$/);
      });
    });
  });

  describe('prefix', () => {
    function check(forwardedPrefix: string, expected: string) {
      it(`is "${expected}" when a trusted proxy says "${forwardedPrefix}"`, async () => {
        const { prefix } = await told({ trustedProxies: loopback }, { 'x-forwarded-prefix': forwardedPrefix });
        assert.equal(prefix, expected);
      });
    }

    check('/travel', '/travel');
    check('/travel/', '/travel');
    check('/travel/v1', '/travel/v1');
    check('/evil, /travel', '/travel');
    check('/', '');
    check('travel', '');
    check('//evil.example', '');
    check('/\\evil.example', '');
    check('/travel//v1', '');
    check('https://evil.example', '');
    check('/"><script>', '');
  });

  describe('trusts', () => {
    const from = (remoteAddress: string | undefined) => ({ socket: { remoteAddress } }) as unknown as IncomingMessage;

    function check(trustedProxies: readonly string[], peer: string | undefined, expected: boolean) {
      it(`${expected ? '' : 'not '}the peer ${peer} where the trusted proxies are [${trustedProxies.join(', ')}]`, () => {
        assert.equal(createAddresses({ trustedProxies }).trusts(from(peer)), expected);
      });
    }

    check([], '127.0.0.1', false);
    check(['10.0.0.1'], '10.0.0.1', true);
    check(['10.0.0.1'], '10.0.0.2', false);
    check(['10.0.0.1'], '::ffff:10.0.0.1', true);
    check(['::ffff:10.0.0.1'], '10.0.0.1', true);
    check(['10.0.0.0/8'], '10.255.255.255', true);
    check(['10.0.0.0/8'], '11.0.0.0', false);
    check(['10.0.0.0/8', '192.0.2.7'], '192.0.2.7', true);
    check(['0.0.0.0/0'], '203.0.113.7', true);
    check(['::1'], '0:0:0:0:0:0:0:1', true);
    check(['2001:db8::/32'], '2001:db8:1::7', true);
    check(['2001:db8::/32'], '2001:db9::7', false);
    check(['fe80::/10'], 'fe80::1%eth0', true);
    check(['10.0.0.0/8'], undefined, false);
    check(['10.0.0.0/8'], 'unknown', false);
    check(['10.0.0.0/8'], '10.0.0.1:80', false);

    for (const entry of [
      '',
      'loopback',
      '10.0.0',
      '10.0.0.0/',
      '10.0.0.0/33',
      '10.0.0.0/-1',
      '10.0.0.0/8.5',
      '10.0.0.0/0x8',
      '10.0.0.0/8/8',
      '::1/129',
    ])
      it(`refuses ${JSON.stringify(entry)} in the list, and names it`, () => {
        const message = `"${entry}" is neither an IP address nor a CIDR range`;
        assert.throws(() => createAddresses({ trustedProxies: [entry] }), { name: 'TypeError', message });
      });

    it('never throws at what a peer calls itself', () => {
      const { trusts } = createAddresses({ trustedProxies: ['10.0.0.0/8', '::1'] });
      fc.assert(
        fc.property(fc.oneof(fc.string(), fc.ipV4(), fc.ipV6()), (peer) => {
          assert.equal(typeof trusts(from(peer)), 'boolean');
        }),
      );
    });
  });
});
