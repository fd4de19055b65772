/** TLS_PORT: HTTPS with the certificates of Gateways beside HTTP at PORT, in the process or thread that serves both. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type RequestOptions, request } from 'node:https';
import { connect, Server } from 'node:net';
import { mock } from 'node:test';
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls';
import type { Context } from 'koa';
import { loadTls, type ServedCertificate, tlsOf } from '#config';
import type { MappingInput } from '../../../src/index.ts';
import { openPart } from '../../../src/server/frontdesk.ts';
import { type FrontdeskOptions, resolveOptions } from '../../../src/server/options.ts';
import { claimPorts } from '../../../src/server/ports.ts';
import { createReceivedConfiguration } from '../../../src/server/threads/received-configuration.ts';
import { mappingRecord, type OpenListeners } from '../../support/desks.ts';
import { type LogLine, recordingLogger } from '../../support/edge.ts';
import { testServers } from '../../support/serve.ts';
import { temporaryFiles } from '../../support/temporary-files.ts';
import { createDeferred, createHeldMiddleware, eventually } from '../../support/waiting.ts';
import { type Certificate, makeCertificate } from '../../support/wire/certificate.ts';
import { echoWebSocket } from '../../support/wire/echo-websocket.ts';
import { openHttp2 } from '../../support/wire/http2-client.ts';
import { peerOf, upgradeRequest } from '../../support/wire/peer.ts';
import { rawRequest, sendRaw, statusOf } from '../../support/wire/raw-client.ts';
import { startSwitchingUpstream } from '../../support/wire/switching-upstream.ts';

describe('TLS_PORT', () => {
  const servers = testServers();
  const writeFiles = temporaryFiles();
  let shop: Certificate;
  let wild: Certificate;
  let other: Certificate;

  before(async function () {
    if ((await makeCertificate(await writeFiles(), 'DNS:a')) === undefined) return this.skip();
    const make = async (name: string) =>
      (await makeCertificate(await writeFiles(), `DNS:${name}.example`, { subject: `/CN=${name}` })) ?? assert.fail();
    [shop, wild, other] = [await make('shop'), await make('wild'), await make('other')];
  });

  const served = (name: string, { cert, key }: Certificate, ...hosts: readonly string[]): ServedCertificate => {
    return { name: `Secret shop/${name}`, cert, key, hosts: hosts.length === 0 ? undefined : hosts };
  };
  const allServed = () => [
    served('shop', shop, 'shop.example', 'www.shop.example'),
    served('wild', wild, '*.shop.example'),
    served('other', other),
  ];

  const gateways = { kubernetes: true, kubernetesGatewayApi: true, tlsPort: 0, port: 0, only: ['gateway'] } as const;

  function echo(ctx: Context): void {
    ctx.body = [ctx.req.httpVersion, ctx.protocol, ctx.ip, ctx.get('x-client-cert-subject')].join(' ');
  }

  /** Opens a desk as a thread does, which gets what the main thread has read. */
  async function open(
    certificates: readonly ServedCertificate[],
    options: FrontdeskOptions = {},
    mapping: Partial<MappingInput> = {},
  ) {
    const config = { records: [mappingRecord('echo', '/', 'echo', mapping)] };
    const setup = await resolveOptions({ ...gateways, config, services: { echo }, ...options });
    const ofFiles = await loadTls(setup.settings);
    const generation = { number: 1, hash: '', appliedAtMs: 0, configuration: setup.loaded.configuration };
    const reloads = { succeeded: 0, failed: 0, lastDurationMs: 0 };
    const { live } = createReceivedConfiguration(generation, { refused: [], errors: [], notices: [], reloads });
    const { desk, replaceCertificates } = await openPart(setup, {
      count: 1,
      isFirst: true,
      configuration: live,
      tls: { current: ofFiles && tlsOf(certificates, ofFiles) },
      counters: undefined,
      logins: { publish() {}, subscribe() {} },
      report() {},
      all: { ...unused, fault: async () => undefined },
    });
    servers.later(desk.close);
    const replace = (next: readonly ServedCertificate[]) => replaceCertificates(tlsOf(next, ofFiles ?? assert.fail()));
    return { desk, replace, listeners: (await desk.listen()) as OpenListeners };
  }

  async function connectAt(port: number, servername?: string, options: ConnectionOptions = {}): Promise<TLSSocket> {
    const sni = servername === undefined ? {} : { servername };
    const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, ...sni, ...options });
    servers.later(() => socket.destroy());
    await once(socket, 'secureConnect');
    return socket;
  }

  /** Returns the CN of the certificate. Rejects if the handshake fails. */
  async function nameAt(port: number, servername?: string): Promise<unknown> {
    const socket = await connectAt(port, servername);
    const { CN } = socket.getPeerCertificate().subject;
    socket.destroy();
    return CN;
  }

  function get(url: string, path: string, options: RequestOptions = {}): Promise<string> {
    return new Promise((resolve, reject) => {
      const sent = request(
        `${url}${path}`,
        { agent: false, rejectUnauthorized: false, ...options },
        async (response) => {
          let text = '';
          for await (const chunk of response) text += chunk;
          resolve(text);
        },
      );
      sent.once('error', reject).end();
    });
  }

  describe('serves the certificate of the listener that matches best, while PORT is HTTP', () => {
    for (const [host, expected] of [
      ['shop.example', 'shop'],
      ['www.shop.example', 'shop'],
      ['api.shop.example', 'wild'],
      ['a.b.shop.example', 'wild'],
      ['unknown.example', 'other'],
      [undefined, 'other'],
    ] as const)
      it(`${host} gets ${expected}`, async () => {
        const { listeners } = await open(allServed());
        assert.equal(await nameAt(listeners.gatewayTls.port, host), expected);
      });

    it('and both serve the same routes', async () => {
      const { listeners } = await open(allServed());
      const { gateway, gatewayTls } = listeners;
      assert.match(gateway.url, /^http:/);
      assert.match(gatewayTls.url, /^https:/);
      assert.notEqual(gateway.port, gatewayTls.port);
      assert.equal(await (await fetch(`${gateway.url}/a`)).text(), '1.1 http 127.0.0.1 ');
      assert.equal(await get(gatewayTls.url, '/a'), '1.1 https 127.0.0.1 ');
    });
  });

  it('has no certificate for others without a listener that has no hostname: they cannot connect', async () => {
    const log: LogLine[] = [];
    const { listeners } = await open(allServed().slice(0, 2), { logger: recordingLogger(log) });
    const { port } = listeners.gatewayTls;
    for (const host of ['unknown.example', undefined]) await assert.rejects(nameAt(port, host), /handshake failure/);
    assert.equal(await nameAt(port, 'shop.example'), 'shop');
    const [{ fields } = assert.fail()] = log.filter(({ message }) => message === 'a TLS handshake failed');
    assert.equal(fields['host'], 'unknown.example');
    assert.match(String(fields['reason']), /^there is no certificate for this host/);
  });

  it('is open before there is a certificate, and gets those that come later without closing a connection', async () => {
    const { listeners, replace } = await open([]);
    const { port } = listeners.gatewayTls;
    await assert.rejects(nameAt(port, 'shop.example'), /handshake failure/);
    await assert.rejects(nameAt(port), /handshake failure/);
    await replace(allServed());
    const socket = await connectAt(port, 'shop.example');
    await replace([served('shop', wild, 'shop.example')]);
    assert.equal(await nameAt(port, 'shop.example'), 'wild');
    await assert.rejects(nameAt(port, 'api.shop.example'), /handshake failure/);
    await replace([]);
    await assert.rejects(nameAt(port, 'shop.example'), /handshake failure/);
    socket.write('GET /a HTTP/1.1\r\nHost: shop.example\r\n\r\n');
    assert.match(String(await once(socket, 'data')), /^HTTP\/1\.1 200 /);
  });

  it('speaks HTTP/2, unless HTTP2 is false', async () => {
    const { listeners } = await open(allServed());
    const client = openHttp2(listeners.gatewayTls.url, { rejectUnauthorized: false });
    servers.later(() => client.session.destroy());
    assert.equal((await client.send()).body, '2.0 https 127.0.0.1 ');
    const without = await open(allServed(), { http2: false });
    const socket = await connectAt(without.listeners.gatewayTls.port, 'shop.example', {
      ALPNProtocols: ['h2', 'http/1.1'],
    });
    assert.notEqual(socket.alpnProtocol, 'h2');
  });

  it('lets clients open a WebSocket', async () => {
    const { origin } = await startSwitchingUpstream(servers, echoWebSocket);
    const { listeners } = await open(allServed(), {}, { service: origin, allow_upgrade: ['websocket'] });
    const client = peerOf(await connectAt(listeners.gatewayTls.port, 'shop.example'));
    client.socket.write(
      upgradeRequest('/chat', ['Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==']),
    );
    await client.until('101 Switching Protocols');
    // A text frame, masked with zeros.
    client.socket.write(Buffer.from([0x81, 0x85, 0, 0, 0, 0, ...Buffer.from('hello')]));
    await client.until('\x81\x05hello');
  });

  it('asks clients for the certificates of TLS_CLIENT_CA, also when it gets others itself', async () => {
    const ca = (await makeCertificate(await writeFiles(), '', { subject: '/CN=ca' })) ?? assert.fail();
    const ann = (await makeCertificate(await writeFiles(), '', { subject: '/CN=ann', issuer: ca })) ?? assert.fail();
    const { listeners, replace } = await open(allServed(), { tlsClientCa: ca.file });
    const { url } = listeners.gatewayTls;
    for (const certificates of [allServed(), [served('other', other)]]) {
      await replace(certificates);
      assert.equal(await get(url, '/a', { cert: ann.cert, key: ann.key }), '1.1 https 127.0.0.1 CN=ann');
      await assert.rejects(get(url, '/a'));
    }
  });

  it('has TLS_MIN_VERSION', async () => {
    const { listeners } = await open(allServed(), { tlsMinVersion: '1.3' });
    await assert.rejects(
      connectAt(listeners.gatewayTls.port, 'shop.example', { maxVersion: 'TLSv1.2' }),
      /protocol version/,
    );
  });

  it('reads the PROXY protocol as PORT does', async () => {
    const { listeners } = await open(allServed(), { proxyProtocol: true, trustedProxies: ['127.0.0.1'] });
    const socket = connect(listeners.gatewayTls.port, '127.0.0.1');
    await once(socket, 'connect');
    socket.write('PROXY TCP4 203.0.113.7 10.0.0.1 4711 443\r\n');
    const secure = connectTls({ socket, servername: 'shop.example', rejectUnauthorized: false });
    servers.later(() => secure.destroy());
    await once(secure, 'secureConnect');
    secure.write('GET /a HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n');
    assert.match(String(await once(secure, 'data')), /1\.1 https 203\.0\.113\.7 /);
  });

  it('answers plain HTTP with 400', async () => {
    const { listeners } = await open(allServed());
    assert.equal(statusOf(await sendRaw(listeners.gatewayTls.port, rawRequest('GET /a'))), 400);
  });

  it('has the connections that are reserved for the gateway together with PORT', async () => {
    let held = 0;
    const released = createDeferred();
    const hold = async (ctx: Context) => {
      held += 1;
      await released.promise;
      ctx.body = 'x';
    };
    const options = { connectionsMax: 40, only: ['gateway', 'auth'], authPort: 0, services: { echo: hold } } as const;
    const { listeners } = await open(allServed(), options);
    // Half of the connections would be out of reach if PORT had them for itself.
    const answers = Array.from({ length: 30 }, () => get(listeners.gatewayTls.url, '/a'));
    await eventually(() => assert.equal(held, 30));
    released.resolve();
    assert.deepEqual(new Set(await Promise.all(answers)), new Set(['x']));
  });

  describe('close', () => {
    it('waits for the requests of both ports at the same time, and for those of neither longer than the other', async () => {
      const [plain, secure] = [createHeldMiddleware(), createHeldMiddleware()];
      const hold = (ctx: Context) => (ctx.protocol === 'https' ? secure : plain).hold(ctx);
      const { desk, listeners } = await open(allServed(), { services: { echo: hold }, shutdownTimeoutMs: 60_000 });
      const { gateway, gatewayTls } = listeners;
      const answers = [fetch(`${gateway.url}/a`).then((answer) => answer.text()), get(gatewayTls.url, '/a')];
      await Promise.all([plain.reached, secure.reached]);
      const closed = desk.close();
      for (const { port } of [gateway, gatewayTls]) await eventually(async () => assert.ok(await refuses(port)));
      plain.release();
      assert.equal(await answers[0], '/a');
      secure.release();
      assert.equal(await answers[1], '/a');
      await closed;
    });
  });

  it('names tlsPort if that port is taken, and opens no listener', async () => {
    const { port } = await servers.tcp(() => {});
    const listened = mock.method(Server.prototype, 'listen');
    await assert.rejects(
      open(allServed(), { tlsPort: port }),
      /127\.0\.0\.1:\d+ \(EADDRINUSE\): another process .*(?:TLS_PORT|tlsPort)/,
    );
    listened.mock.restore();
    for (const one of listened.mock.calls) assert.equal((one.this as Server).listening, false);
  });

  it('is checked before threads listen on it', async () => {
    const { port } = await servers.tcp(() => {});
    const setup = await resolveOptions({ ...gateways, tlsPort: port, config: { records: [] } });
    await assert.rejects(claimPorts(setup), /127\.0\.0\.1:\d+ \(EADDRINUSE\): another process .*TLS_PORT/);
  });

  it('is not open in a process without the gateway', async () => {
    const { listeners } = await open(allServed(), { only: ['auth'], authPort: 0 });
    assert.equal(listeners.gatewayTls, undefined);
  });

  for (const [what, options, expected] of [
    ['with TLS_PORT', {}, []],
    ['without it, and names it', { tlsPort: undefined }, [/open on all addresses without TLS: set TLS_PORT, or/]],
  ] as const)
    it(`is what a gateway on all addresses needs: the log has ${expected.length} warnings ${what}`, async () => {
      const log: LogLine[] = [];
      await open([], { host: '0.0.0.0', logger: recordingLogger(log), ...options });
      const warnings = log.filter(({ level }) => level === 'warn').map(({ message }) => message ?? '');
      assert.equal(warnings.length, expected.length, warnings.join());
      for (const [index, pattern] of expected.entries()) assert.match(warnings[index] ?? '', pattern);
    });
});

function refuses(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(false)).once('error', () => resolve(true));
    socket.once('connect', () => socket.destroy());
  });
}

/** What no test asks for. */
const unused = {
  metrics: async () => [],
  limiterMetrics: async () => [],
  diagnostics: async () => assert.fail(),
  kubernetes: async () => undefined,
};
