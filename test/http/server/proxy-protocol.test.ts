/** The PROXY protocol: what its headers may look like, and what becomes of connections with and without one. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import fc from 'fast-check';
import { silentLogger } from '#foundation';
import { createConnectionLimit, type HttpServerOptions } from '#http';
import { parseProxyHeader } from '../../../src/http/server/proxy-protocol.ts';
import { testServers } from '../../support/serve.ts';
import { temporaryFiles } from '../../support/temporary-files.ts';
import { closeOf, eventually } from '../../support/waiting.ts';
import { type Certificate, makeCertificate } from '../../support/wire/certificate.ts';
import { startHttp } from '../../support/wire/http-server.ts';
import { speak } from '../../support/wire/peer.ts';
import { bodyOf, rawRequest, sendRaw, statusOf } from '../../support/wire/raw-client.ts';

const signature = Buffer.from('0d0a0d0a000d0a515549540a', 'hex');

/** A header of version 2. */
function binary(command: number, family: number, rest: Buffer, length = rest.length): Buffer {
  const fixed = Buffer.from([command, family, length >> 8, length & 255]);
  return Buffer.concat([signature, fixed, rest]);
}

const addresses4 = Buffer.from([203, 0, 113, 7, 10, 0, 0, 1, 0xdd, 0xd5, 0x01, 0xbb]);
const addresses6 = Buffer.from(`20010db8${'0'.repeat(22)}07${'0'.repeat(30)}01ddd501bb`, 'hex');
const mapped6 = Buffer.from(`${'0'.repeat(20)}ffffcb007107${'0'.repeat(20)}ffff0a000001ddd501bb`, 'hex');
const facts = Buffer.from('0300040102030402000a6170692e746573742e', 'hex');

const peer4 = { address: '203.0.113.7', port: 56_789 };
const peer6 = { address: '2001:db8::7', port: 56_789 };

const text = (line: string) => Buffer.from(line, 'latin1');

const valid: readonly (readonly [what: string, header: Buffer, peer: object | undefined])[] = [
  ['TCP4', text('PROXY TCP4 203.0.113.7 10.0.0.1 56789 443\r\n'), peer4],
  ['TCP6', text('PROXY TCP6 2001:DB8:0:0::7 ::1 56789 443\r\n'), peer6],
  ['TCP6 with an IPv4 address', text('PROXY TCP6 ::ffff:203.0.113.7 ::1 56789 443\r\n'), peer4],
  ['UNKNOWN', text('PROXY UNKNOWN\r\n'), undefined],
  ['UNKNOWN with addresses', text('PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n'), undefined],
  ['the longest line', text(`PROXY UNKNOWN ${'f'.repeat(91)}\r\n`), undefined],
  ['IPv4', binary(0x21, 0x11, addresses4), peer4],
  ['IPv4 with more facts', binary(0x21, 0x11, Buffer.concat([addresses4, facts])), peer4],
  ['IPv6', binary(0x21, 0x21, addresses6), peer6],
  ['IPv4 in IPv6', binary(0x21, 0x21, mapped6), peer4],
  ['a Unix socket', binary(0x21, 0x31, Buffer.alloc(216)), undefined],
  ['no family', binary(0x21, 0x00, facts), undefined],
  ['the proxy itself', binary(0x20, 0x00, Buffer.alloc(0)), undefined],
  ['the proxy itself, with addresses', binary(0x20, 0x11, addresses4), undefined],
  ['as much as is read', binary(0x21, 0x11, Buffer.concat([addresses4, Buffer.alloc(4084)])), peer4],
];

const invalid: readonly (readonly [what: string, header: Buffer])[] = [
  ['HTTP', text('GET / HTTP/1.1\r\n')],
  ['TLS', Buffer.from('1603010200', 'hex')],
  ['lower case', text('proxy TCP4 203.0.113.7 10.0.0.1 1 2\r\n')],
  ['another family', text('PROXY UDP4 203.0.113.7 10.0.0.1 1 2\r\n')],
  ['IPv6 as TCP4', text('PROXY TCP4 ::1 ::1 1 2\r\n')],
  ['IPv4 as TCP6', text('PROXY TCP6 203.0.113.7 10.0.0.1 1 2\r\n')],
  ['an interface', text('PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n')],
  ['zeros before a number', text('PROXY TCP4 203.0.113.007 10.0.0.1 1 2\r\n')],
  ['zeros before a port', text('PROXY TCP4 203.0.113.7 10.0.0.1 01 2\r\n')],
  ['a port that is too high', text('PROXY TCP4 203.0.113.7 10.0.0.1 65536 2\r\n')],
  ['two spaces', text('PROXY TCP4  203.0.113.7 10.0.0.1 1 2\r\n')],
  ['a space at the end', text('PROXY TCP4 203.0.113.7 10.0.0.1 1 2 \r\n')],
  ['no ports', text('PROXY TCP4 203.0.113.7 10.0.0.1\r\n')],
  ['a line feed alone', text('PROXY TCP4 203.0.113.7 10.0.0.1 1 2\nGET / HTTP/1.1\r\n')],
  ['a second line in its place', text('PROXY TCP4 203.0.113.7\r\n10.0.0.1 1 2\r\n')],
  ['a line of 108 bytes', text(`PROXY UNKNOWN ${'f'.repeat(92)}\r\n`)],
  ['version 1 in the form of version 2', binary(0x11, 0x11, addresses4)],
  ['version 3', binary(0x31, 0x11, addresses4)],
  ['an unknown command', binary(0x22, 0x11, addresses4)],
  ['datagrams', binary(0x21, 0x12, addresses4)],
  ['an unknown family', binary(0x21, 0x41, addresses4)],
  ['too few addresses', binary(0x21, 0x21, addresses4)],
  ['more than is read', binary(0x21, 0x11, Buffer.alloc(4097))],
];

describe('parseProxyHeader', () => {
  for (const [what, header, peer] of valid) {
    it(`reads ${what}, whatever follows`, () => {
      for (const rest of ['', 'GET / HTTP/1.1\r\n', 'PROXY TCP4 1.1.1.1 1.1.1.1 1 1\r\n']) {
        const parsed = parseProxyHeader(Buffer.concat([header, text(rest)]));
        assert.deepEqual(parsed, { kind: 'complete', bytes: header.length, peer });
      }
    });

    it(`waits for the rest of ${what}, and never for more than that`, () => {
      for (let length = 0; length < header.length; length += 1) {
        const parsed = parseProxyHeader(header.subarray(0, length));
        assert.ok(parsed.kind === 'incomplete', `${length}: ${parsed.kind}`);
        assert.ok(parsed.bytesMin > length && parsed.bytesMin <= header.length, `${length}: ${parsed.bytesMin}`);
      }
    });
  }

  for (const [what, header] of invalid)
    it(`rejects ${what}`, () => {
      assert.equal(parseProxyHeader(header).kind, 'malformed');
    });

  it('decides about any bytes within its bounds, and does not change its mind when more arrive', () => {
    const start = fc.constantFrom(...[...valid, ...invalid].map(([, header]) => header));
    const bytes = fc.tuple(start, fc.nat(4200), fc.uint8Array({ maxLength: 200 }));
    fc.assert(
      fc.property(bytes, fc.uint8Array({ maxLength: 50 }), ([header, cut, tail], more) => {
        const first = Buffer.concat([header.subarray(0, cut), tail]);
        const parsed = parseProxyHeader(first);
        if (parsed.kind === 'incomplete') assert.ok(parsed.bytesMin > first.length && parsed.bytesMin <= 16 + 4096);
        else assert.deepEqual(parseProxyHeader(Buffer.concat([first, more])), parsed);
        if (parsed.kind === 'complete') assert.ok(parsed.bytes <= first.length && parsed.bytes <= 16 + 4096);
      }),
    );
  });

  it('reads back every client that is written in either version', () => {
    const port = fc.nat(65_535);
    fc.assert(
      fc.property(fc.ipV4(), port, (address, number) => {
        const line = text(`PROXY TCP4 ${address} 10.0.0.1 ${number} 80\r\n`);
        const numbers = [...address.split('.').map(Number), 10, 0, 0, 1, number >> 8, number & 255, 0, 80];
        for (const header of [line, binary(0x21, 0x11, Buffer.from(numbers))])
          assert.deepEqual(parseProxyHeader(header), {
            kind: 'complete',
            bytes: header.length,
            peer: { address, port: number },
          });
      }),
    );
  });
});

describe('a server that reads the PROXY protocol', () => {
  const servers = testServers();
  const writeFiles = temporaryFiles();

  const handler: HttpServerOptions['handler'] = ({ socket, url }, response) => {
    response.end(`${url} of ${socket.remoteAddress} ${socket.remotePort}`);
  };

  async function start(options: Partial<HttpServerOptions> = {}) {
    const lines: Readonly<Record<string, unknown>>[] = [];
    const logger = { warn: (fields: object) => void lines.push({ ...fields }) };
    const { port } = await startHttp(servers, {
      handler,
      logger,
      proxyProtocolFrom: ['127.0.0.0/8'],
      ...options,
    });
    return { port, lines };
  }

  const request = rawRequest('GET /a');

  for (const [what, header, expected] of [
    ['version 1', valid[0]?.[1], '203.0.113.7 56789'],
    ['version 2', valid[8]?.[1], '2001:db8::7 56789'],
  ] as const)
    it(`takes the client of ${what} for the peer, and reads the request after it, also byte by byte`, async () => {
      const { port } = await start();
      const all = (header?.toString('latin1') ?? '') + request;
      assert.equal(bodyOf(await sendRaw(port, all)), `/a of ${expected}`);
      const slow = connect({ port, host: '127.0.0.1', noDelay: true });
      let received = '';
      slow.on('data', (chunk) => {
        received += String(chunk);
      });
      const closed = closeOf(slow);
      for (const byte of Buffer.from(all, 'latin1')) {
        slow.write(Buffer.from([byte]));
        await new Promise(setImmediate);
      }
      await closed;
      assert.equal(bodyOf(received), `/a of ${expected}`);
    });

  it('reads a body that arrives with the header, and several requests', async () => {
    const { port } = await start({
      async handler(req, response) {
        let body = '';
        for await (const chunk of req) body += chunk;
        response.end(body);
      },
    });
    const post = (body: string, last = '') =>
      `POST / HTTP/1.1\r\nHost: a\r\n${last}Content-Length: ${body.length}\r\n\r\n${body}`;
    const response = await sendRaw(
      port,
      `PROXY TCP4 203.0.113.7 10.0.0.1 1 2\r\n${post('first')}${post('second', 'Connection: close\r\n')}`,
    );
    assert.match(response, /first[\s\S]*second/);
  });

  for (const [what, header] of [
    ['speaks for itself', binary(0x20, 0, Buffer.alloc(0)).toString('latin1')],
    ['does not know the client', 'PROXY UNKNOWN\r\n'],
  ] as const)
    it(`takes the proxy for the peer if it ${what}`, async () => {
      const { port } = await start();
      assert.match(bodyOf(await sendRaw(port, header + request)), /^\/a of 127\.0\.0\.1 \d+$/);
    });

  for (const [what, bytes, reason] of [
    ['begins with a request', request, /does not begin with a PROXY header/],
    ['has a malformed header', 'PROXY TCP4 a b c d\r\n', /malformed/],
  ] as const)
    it(`closes a connection that ${what}, and logs why`, async () => {
      const { port, lines } = await start();
      assert.equal(await sendRaw(port, bytes), '');
      assert.equal(lines[0]?.['client'], '127.0.0.1');
      assert.match(String(lines[0]?.['reason']), reason);
    });

  it('closes a connection that ends within its header, and does not log one without a byte', async () => {
    const { port, lines } = await start();
    const silent = connect(port, '127.0.0.1').end();
    silent.resume();
    await closeOf(silent);
    const partial = connect(port, '127.0.0.1');
    partial.resume().end('PROXY TCP4 ');
    await closeOf(partial);
    assert.deepEqual(
      lines.map(({ reason }) => reason),
      ['it ended within its PROXY header'],
    );
  });

  it('closes a connection that is not from a proxy, although it has a header', async () => {
    const { port, lines } = await start({ proxyProtocolFrom: ['10.0.0.0/8'] });
    assert.equal(await sendRaw(port, `PROXY TCP4 203.0.113.7 10.0.0.1 1 2\r\n${request}`), '');
    assert.match(String(lines[0]?.['reason']), /not in TRUSTED_PROXIES/);
  });

  it('closes a connection whose header does not arrive in time', async () => {
    const { port, lines } = await start({ headerTimeoutMs: 50 });
    assert.equal(await speak(port, 'PROXY ').closed, '');
    assert.match(String(lines[0]?.['reason']), /in time/);
  });

  it('survives a connection that is reset within its header', async () => {
    const { port } = await start();
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    socket.write('PROXY ');
    socket.resetAndDestroy();
    assert.equal(statusOf(await sendRaw(port, `PROXY UNKNOWN\r\n${request}`)), 200);
  });

  it('closes the connection that has waited longest for its header when it needs room', async () => {
    const limit = createConnectionLimit({ max: 2, logger: silentLogger });
    const { port } = await start({ connectionShare: limit.share() });
    const [first, second] = [speak(port, 'PROXY '), speak(port, 'PROXY ')];
    await eventually(() => assert.equal(limit.counts().open, 2));
    assert.equal(statusOf(await sendRaw(port, `PROXY UNKNOWN\r\n${request}`)), 200);
    assert.equal(await first.closed, '');
    second.socket.destroy();
  });

  it('closes connections without a header when it shuts down', async () => {
    const server = await startHttp(servers, { handler, proxyProtocolFrom: ['127.0.0.1'] });
    const waiting = speak(server.port, 'PROXY ');
    await once(waiting.socket, 'connect');
    await Promise.all([server.close(10_000), waiting.closed]);
  });

  describe('before TLS', () => {
    let tls: Certificate | undefined;

    before(async function () {
      tls = await makeCertificate(await writeFiles(), 'IP:127.0.0.1');
      if (tls === undefined) this.skip();
    });

    async function getThrough(port: number, header: string): Promise<string> {
      const socket = connect(port, '127.0.0.1');
      socket.write(header, 'latin1');
      const secure = connectTls({ socket, rejectUnauthorized: false });
      secure.end(request);
      let received = '';
      for await (const chunk of secure) received += chunk;
      return bodyOf(received);
    }

    it('takes the client for the peer of the encrypted connection', async () => {
      const limit = createConnectionLimit({ max: 10, logger: silentLogger });
      const { port } = await start({ tls, connectionShare: limit.share() });
      for (const [, header, peer] of valid.filter(([, , one]) => one === peer4 || one === peer6))
        assert.equal(
          await getThrough(port, header.toString('latin1')),
          `/a of ${peer === peer4 ? peer4.address : peer6.address} 56789`,
        );
      await eventually(() => assert.equal(limit.counts().open, 0));
    });

    it('takes the proxy for the peer if it speaks for itself', async () => {
      const { port } = await start({ tls });
      assert.match(await getThrough(port, 'PROXY UNKNOWN\r\n'), /^\/a of 127\.0\.0\.1 \d+$/);
    });

    it('logs a failed handshake with the address of the client', async () => {
      const { port, lines } = await start({ tls });
      await sendRaw(port, `PROXY TCP4 203.0.113.7 10.0.0.1 1 2\r\n${request}`);
      await eventually(() => assert.equal(lines[0]?.['client'], '203.0.113.7'));
    });
  });
});
