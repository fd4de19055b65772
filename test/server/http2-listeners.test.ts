/** HTTP/2 at each listener: with TLS, behind a proxy that names the client, with several threads, and turned off. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Context } from 'koa';
import type { FrontdeskOptions } from '../../src/index.ts';
import { copyConfig, desksOf, mappingRecord } from '../support/desks.ts';
import { type LogLine, recordingLogger } from '../support/edge.ts';
import { startServer } from '../support/programs/frontdesk-process.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { eventually } from '../support/waiting.ts';
import { type Certificate, makeCertificate } from '../support/wire/certificate.ts';
import { openHttp2, sendUntilGoAway } from '../support/wire/http2-client.ts';
import { preface } from '../support/wire/http2-frames.ts';
import { sendRaw, statusOf } from '../support/wire/raw-client.ts';

describe('HTTP/2 at the listeners', () => {
  const servers = testServers();
  const openDesk = desksOf(servers);
  const writeFiles = temporaryFiles();
  let server: Certificate;
  let ann: Certificate;
  let ca: Certificate;

  before(async function () {
    const made = await makeCertificate(await writeFiles(), 'IP:127.0.0.1,DNS:localhost');
    if (made === undefined) return this.skip();
    server = made;
    const make = async (subject: string, more = {}) => {
      const certificate = await makeCertificate(await writeFiles(), '', { subject, ...more });
      return certificate ?? assert.fail();
    };
    ca = await make('/CN=ca');
    ann = await make('/O=Example/CN=ann', { issuer: ca });
  });

  /** Responds with what a service is told about the client. */
  function echo(ctx: Context): void {
    ctx.body = [ctx.req.httpVersion, ctx.protocol, ctx.ip, ctx.get('x-client-cert-subject')].join(' ');
  }

  async function open(options: FrontdeskOptions = {}) {
    const log: LogLine[] = [];
    const records = [mappingRecord('echo', '/', 'echo', { bypass_auth: true })];
    const desk = await openDesk({
      config: { records },
      services: { echo },
      demo: false,
      adminPort: 0,
      accessLog: 'json',
      logger: recordingLogger(log),
      ...options,
    });
    const lines = () => log.filter(({ message }) => message === 'request').map(({ fields }) => fields);
    return { listeners: await desk.listen(), lines };
  }

  const withTls = () => ({ tlsCert: server.file, tlsKey: server.keyFile });

  function openAt(url: string, options = {}) {
    const client = openHttp2(url, { ca: server.cert, ...options });
    servers.later(() => client.session.destroy());
    return client;
  }

  it('over TLS, the service and the log get the scheme and the version of TLS', async () => {
    const { listeners, lines } = await open(withTls());
    assert.equal((await openAt(listeners.gateway.url).send()).body, '2.0 https 127.0.0.1 ');
    await eventually(() => assert.equal(lines().length, 1));
    const [{ protocol, tls, client } = {}] = lines();
    assert.deepEqual([protocol, tls, client], ['HTTP/2.0', 'TLSv1.3', '127.0.0.1']);
  });

  it('over TLS, the service gets the subject of the client certificate', async () => {
    const { listeners } = await open({ ...withTls(), tlsClientCa: ca.file, tlsClientAuth: 'request' });
    const { cert, key } = ann;
    const { send } = openAt(listeners.gateway.url, { cert, key });
    for (let sent = 0; sent < 2; sent += 1) assert.equal((await send()).body, '2.0 https 127.0.0.1 CN=ann,O=Example');
    assert.equal((await openAt(listeners.gateway.url).send()).body, '2.0 https 127.0.0.1 ');
  });

  for (const [what, tls] of [
    ['without TLS', false],
    ['with TLS', true],
  ] as const) {
    it(`the client is the one that a proxy names with the PROXY protocol, ${what}`, async () => {
      const { listeners, lines } = await open({
        ...(tls && withTls()),
        proxyProtocol: true,
        trustedProxies: ['127.0.0.1'],
      });
      const socket = connect(listeners.gateway.port, '127.0.0.1');
      await once(socket, 'connect');
      socket.write('PROXY TCP4 203.0.113.7 10.0.0.1 4711 80\r\n');
      const options = tls ? { socket, host: '127.0.0.1', ca: server.cert } : { createConnection: () => socket };
      const { send } = openAt(listeners.gateway.url, options);
      const scheme = tls ? 'https' : 'http';
      assert.equal((await send()).body, `2.0 ${scheme} 203.0.113.7 `);
      await eventually(() => assert.equal(lines().length, 1));
      assert.equal(lines()[0]?.['client'], '203.0.113.7');
    });
  }

  it('is spoken by the admin port and the one that redirects to HTTPS', async () => {
    const { listeners } = await open({ ...withTls(), httpRedirectPort: 0 });
    assert.equal((await openAt(listeners.admin.url).send({ ':path': '/livez' })).status, 200);
    const { status, headers } = await openAt(listeners.redirect.url).send({ ':authority': 'localhost', ':path': '/a' });
    assert.deepEqual([status, headers['location']], [301, `https://localhost:${listeners.gateway.port}/a`]);
  });

  it('is not spoken if HTTP2 is false: the preface gets 400, and TLS has HTTP/1.1', async () => {
    const clear = await open({ http2: false });
    assert.equal(statusOf(await sendRaw(clear.listeners.gateway.port, preface)), 400);
    assert.equal(statusOf(await sendRaw(clear.listeners.admin.port, preface)), 400);
    const { listeners } = await open({ http2: false, ...withTls() });
    const client = openAt(listeners.gateway.url);
    assert.equal((await client.send().catch(() => ({ status: 0 }))).status, 0);
    await client.closed;
  });

  it('is served by several threads, and a shutdown loses no request', async () => {
    const CONFIG_DIR = await copyConfig(writeFiles);
    const program = await startServer(['--demo'], { env: { CONFIG_DIR, THREADS: '2', DRAIN_MS: '100' } });
    servers.later(program.stop);
    const clients = Array.from({ length: 8 }, () => openAt(program.gatewayUrl));
    const paths = ['/v1/messages/1', '/v2/messages/'];
    let sent = 0;
    const pathOf = (index: number) => {
      sent += 1;
      return paths[index % paths.length] ?? '';
    };
    const running = clients.map((client) => sendUntilGoAway(client, pathOf));
    await eventually(() => assert.ok(sent > 200));
    const { code } = await program.stop();
    const outcomes = (await Promise.all(running)).flat();
    const lost = outcomes.filter(({ status, isRefused }) => status !== 200 && !isRefused);
    assert.deepEqual([code, lost], [0, []]);
  });
});
