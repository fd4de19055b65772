/** The `tls` of a record: the authority, the name and the certificate with which a service over HTTPS is called. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { copyFile, rm, writeFile } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:https';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import type { MappingInput } from '../../../src/index.ts';
import { authRecord, call, desksOf, mappingRecord } from '../../support/desks.ts';
import { type LogLine, recordingLogger } from '../../support/edge.ts';
import { testServers } from '../../support/serve.ts';
import { temporaryFiles, yamlOf } from '../../support/temporary-files.ts';
import { eventually } from '../../support/waiting.ts';
import { type Certificate, makeCertificate } from '../../support/wire/certificate.ts';

describe('tls of a record', () => {
  const servers = testServers();
  const openDesk = desksOf(servers);
  const writeFiles = temporaryFiles();
  let ca: Certificate;
  let server: Certificate;
  let client: Certificate;

  before(async function () {
    const found = await makeCertificate(await writeFiles(), '', { subject: '/CN=ca' });
    if (found === undefined) return this.skip();
    ca = found;
    server = await signed('DNS:orders.internal', '/CN=orders');
    client = await signed('DNS:gateway', '/CN=gateway');
  });

  async function signed(names: string, subject: string): Promise<Certificate> {
    const made = await makeCertificate(await writeFiles(), names, { subject, issuer: ca });
    assert.ok(made !== undefined);
    return made;
  }

  /** A service that requires a certificate of `ca`, and responds with its CN. */
  async function startService(handler?: RequestListener): Promise<string> {
    const { cert, key } = server;
    const https = createServer({ cert, key, ca: ca.cert, requestCert: true, rejectUnauthorized: true });
    https.on('request', handler ?? ((req, res) => void res.end(commonName(req.socket as TLSSocket))));
    https.on('upgrade', (req, socket) => {
      const name = commonName(req.socket as TLSSocket);
      socket.end(`HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n${name}`);
    });
    const { port } = await servers.listen(https);
    return `https://127.0.0.1:${port}`;
  }

  const allFiles = {
    ca: 'tls/ca.pem',
    server_name: 'orders.internal',
    client_cert: 'tls/a.crt',
    client_key: 'tls/a.key',
  };

  async function writeConfig(...records: readonly object[]): Promise<string> {
    const directory = await writeFiles({ 'services/a.yaml': yamlOf(...records), 'tls/ca.pem': ca.cert });
    await copyFile(client.file, join(directory, 'tls/a.crt'));
    await copyFile(client.keyFile, join(directory, 'tls/a.key'));
    return directory;
  }

  const orders = (service: string, more: Partial<MappingInput> = {}) =>
    mappingRecord('orders', '/orders', service, { tls: allFiles, ...more });

  it('is used for requests, health checks, upgrades and auth services', async () => {
    const checked: string[] = [];
    const service = await startService((req, res) => {
      if (req.url === '/health') checked.push(commonName(req.socket as TLSSocket));
      res.end(commonName(req.socket as TLSSocket));
    });
    const health_checks = { interval: '10ms', health_check: { http: { path: '/health' } } };
    const auth = { ...authRecord, auth_service: service, tls: allFiles };
    const config = await writeConfig(orders(service, { health_checks, allow_upgrade: ['echo'] }), auth);
    const desk = await openDesk({ config, demo: false });
    assert.equal((await call(desk, '/orders').expect(200)).text, 'gateway');
    await eventually(() => assert.equal(checked[0], 'gateway'));
    const { gateway } = await desk.listen();
    const socket = connect(gateway.port, '127.0.0.1');
    servers.later(() => socket.destroy());
    socket.write('GET /orders HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n');
    let text = '';
    socket.on('data', (data) => {
      text += data;
    });
    await once(socket, 'end');
    assert.match(text, /^HTTP\/1\.1 101 .*\r\n\r\ngateway$/s);
  });

  it('is necessary: without one of its fields, the service is not called, and each mapping has its own', async () => {
    const service = await startService();
    const { ca: authority, server_name, client_cert, client_key } = allFiles;
    const incomplete = {
      ca: { server_name, client_cert, client_key },
      name: { ca: authority, client_cert, client_key },
      client: { ca: authority, server_name },
    };
    const records = Object.entries(incomplete).map(([name, tls]) => mappingRecord(name, `/${name}`, service, { tls }));
    const desk = await openDesk({ config: await writeConfig(orders(service), ...records), demo: false });
    for (const name of Object.keys(incomplete)) {
      await call(desk, '/orders').expect(200);
      const { status } = await call(desk, `/${name}`);
      assert.ok(status === 502 || status === 503, `${name}: ${status}`);
    }
  });

  it('has its files read again when they change, without a restart, and the last ones are kept while one is wrong', async () => {
    const service = await startService();
    const config = await writeConfig(orders(service));
    const log: LogLine[] = [];
    const desk = await openDesk({ config, demo: false, logger: recordingLogger(log) });
    assert.equal((await call(desk, '/orders').expect(200)).text, 'gateway');
    const next = await signed('DNS:next', '/CN=next');
    await writeFile(join(config, 'tls/a.crt'), next.cert);
    await desk.reload();
    assert.equal((await call(desk, '/orders').expect(200)).text, 'gateway');
    assert.match(
      log.find(({ level }) => level === 'error')?.message ?? '',
      /a\.yaml:1 {2}Mapping orders: tls: client_cert and client_key cannot be used \(.*key values mismatch\)/,
    );
    await writeFile(join(config, 'tls/a.key'), next.key);
    // Nobody asks for a reload.
    await eventually(async () => assert.equal((await call(desk, '/orders').expect(200)).text, 'next'), 50);
    for (const { message, fields } of log)
      assert.ok(!`${message}${JSON.stringify(fields)}`.includes(next.key.split('\n')[1] ?? 'none'));
  });

  for (const [what, tls, expected] of [
    [
      'a file that is missing',
      { ca: 'tls/none.pem' },
      /a\.yaml:1 {2}Mapping orders: tls: ca "tls\/none\.pem" cannot be read \(ENOENT\)\n/,
    ],
    ['a file that is not PEM', { ca: 'services/a.yaml' }, /tls: ca "services\/a\.yaml" is not a PEM file/],
    [
      'a key without its certificate',
      { client_key: 'tls/a.key' },
      /a\.yaml:1 .*client_key has no effect without client_cert/,
    ],
    [
      'a key in place of its file',
      { client_key: '-----BEGIN PRIVATE KEY-----s3cret', client_cert: 'tls/a.crt' },
      /client_key is the contents of a file/,
    ],
    ['an unknown field', { cacert: 'tls/ca.pem' }, /unknown key "cacert" in tls/],
  ] as const)
    it(`with ${what} is an error with its place`, async () => {
      const record = { ...orders('https://127.0.0.1:1'), tls };
      await assert.rejects(openDesk({ config: await writeConfig(record), demo: false }), ({ message }: Error) => {
        assert.match(message, expected);
        return !message.includes('s3cret');
      });
    });

  it('is an error for a service that is not called with https, and for a redirect', async () => {
    await assert.rejects(
      openDesk({ config: await writeConfig(orders('http://127.0.0.1:1')), demo: false }),
      /tls has no effect on a service that is not called with https\n.*Write https:\/\/host:port/,
    );
    const auth = { ...authRecord, auth_service: 'auth', tls: allFiles };
    await assert.rejects(
      openDesk({ config: await writeConfig(auth), demo: false }),
      /AuthService auth: tls has no effect/,
    );
  });

  it('can be passed by a program, with files relative to the working directory', async () => {
    const service = await startService();
    const config = await writeConfig();
    const tls = { ...allFiles, ca: join(config, 'tls/ca.pem'), client_cert: client.file, client_key: client.keyFile };
    const desk = await openDesk({ config: { records: [orders(service, { tls })] }, demo: false });
    await rm(config, { recursive: true });
    assert.equal((await call(desk, '/orders').expect(200)).text, 'gateway');
  });
});

function commonName(socket: TLSSocket): string {
  return socket.getPeerX509Certificate()?.subject.replace(/^CN=/, '') ?? 'none';
}
