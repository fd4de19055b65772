/** Several certificates at one port, which are chosen by the host that a client asks for and replaced while it runs. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import type { Diagnostics } from '#diag';
import type { FrontdeskOptions } from '../../../src/index.ts';
import { callAsDemo, desksOf, mappingRecord, type TestDesk } from '../../support/desks.ts';
import { type LogLine, recordingLogger } from '../../support/edge.ts';
import { runFrontdesk } from '../../support/programs/frontdesk-process.ts';
import { among, scrape } from '../../support/scrape.ts';
import { testServers } from '../../support/serve.ts';
import { temporaryFiles } from '../../support/temporary-files.ts';
import { eventually } from '../../support/waiting.ts';
import { type CertificateOptions, makeCertificate } from '../../support/wire/certificate.ts';

const dayMs = 86_400_000;

describe('certificates of TLS_DIR', () => {
  const servers = testServers();
  const openDesk = desksOf(servers);
  const writeFiles = temporaryFiles();

  before(async function () {
    if ((await makeCertificate(await writeFiles(), 'DNS:a')) === undefined) this.skip();
  });

  /** Writes `name.crt` and `name.key`. The subject is the name, so that a test can tell which one it got. */
  function make(directory: string, name: string, names: string, more: CertificateOptions = {}) {
    return makeCertificate(directory, names, {
      subject: `/CN=${name}`,
      files: [`${name}.crt`, `${name}.key`],
      ...more,
    });
  }

  async function makeFolder(directory: string, name: string, names: string) {
    await mkdir(join(directory, name));
    return makeCertificate(join(directory, name), names, { subject: `/CN=${name}`, files: ['tls.crt', 'tls.key'] });
  }

  const records = { records: [mappingRecord('echo', '/', 'echo')] };
  const services = { echo: respond };

  function open(options: FrontdeskOptions): Promise<TestDesk> {
    return openDesk({ config: records, services, demo: false, adminPort: 0, ...options });
  }

  /** Connects, and returns the socket and the CN of the server's certificate. */
  async function connectTo({ port }: { readonly port: number }, options: ConnectionOptions = {}) {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options });
    servers.later(() => socket.destroy());
    await once(socket, 'secureConnect');
    return { socket, name: commonName(socket) };
  }

  async function nameAt(desk: TestDesk, servername?: string, options: ConnectionOptions = {}) {
    const { gateway } = await desk.listen();
    const { name, socket } = await connectTo(gateway, { ...(servername !== undefined && { servername }), ...options });
    socket.destroy();
    return name;
  }

  describe('are chosen by the host that the client asks for', () => {
    let directory = '';
    before(async () => {
      directory = await writeFiles();
      await make(directory, 'shop', 'DNS:shop.example,DNS:www.shop.example');
      await make(directory, 'wild', 'DNS:*.shop.example');
      await make(directory, 'idn', 'DNS:xn--bcher-kva.example');
      await makeFolder(directory, 'kubernetes', 'DNS:cluster.example');
      await make(directory, 'both-ec', 'DNS:both.example');
      await make(directory, 'both-rsa', 'DNS:both.example', { keyType: 'rsa' });
      await make(directory, 'rsa', 'DNS:rsa.example', { keyType: 'rsa' });
    });

    for (const [host, expected] of [
      ['shop.example', 'shop'],
      ['SHOP.example', 'shop'],
      ['www.shop.example', 'shop'],
      ['api.shop.example', 'wild'],
      ['a.b.shop.example', 'both-ec'],
      ['xn--bcher-kva.example', 'idn'],
      ['cluster.example', 'kubernetes'],
      ['unknown.example', 'both-ec'],
    ])
      it(`${host} gets ${expected}`, async () => {
        assert.equal(await nameAt(await open({ tlsDir: directory }), host), expected);
      });

    it('a client that asks for none gets the first one by name, or that of TLS_CERT', async () => {
      assert.equal(await nameAt(await open({ tlsDir: directory })), 'both-ec');
      const own = await makeCertificate(await writeFiles(), 'DNS:own.example', { subject: '/CN=own' });
      const desk = await open({ tlsDir: directory, tlsCert: own?.file, tlsKey: own?.keyFile });
      assert.equal(await nameAt(desk), 'own');
      assert.equal(await nameAt(desk, 'unknown.example'), 'own');
      assert.equal(await nameAt(desk, 'own.example'), 'own');
      assert.equal(await nameAt(desk, 'shop.example'), 'shop');
    });

    it('a host with several gets the first one by name, whatever the type of its key and of the others', async () => {
      const desk = await open({ tlsDir: directory });
      const rsaOnly = { sigalgs: 'rsa_pss_rsae_sha256' };
      assert.equal(await nameAt(desk, 'both.example'), 'both-ec');
      assert.equal(await nameAt(desk, 'rsa.example', rsaOnly), 'rsa');
      await assert.rejects(nameAt(desk, 'rsa.example', { sigalgs: 'ecdsa_secp256r1_sha256' }));
    });

    it('and each has a metric and a row in the diagnostics with the time when it expires', async () => {
      const desk = await openDesk({ tlsDir: directory, adminPort: 0 });
      const series = among(await scrape(desk), 'frontdesk_certificate_expires_timestamp_seconds');
      const files = ['both-ec.crt', 'both-rsa.crt', 'idn.crt', 'kubernetes/tls.crt', 'rsa.crt', 'shop.crt', 'wild.crt'];
      assert.deepEqual(Object.keys(series).sort(), files);
      for (const value of Object.values(series)) assert.ok(Math.abs(value * 1000 - Date.now() - 90 * dayMs) < dayMs);
      const { body } = await callAsDemo(desk, '/gateway/v0/diag/').set('Accept', 'application/json').expect(200);
      const { certificates, certificates_total: total } = body as Diagnostics;
      assert.equal(total, 7);
      assert.deepEqual(certificates[5], {
        name: 'shop.crt',
        hosts: ['shop.example', 'www.shop.example'],
        expires_at: new Date((series['shop.crt'] ?? 0) * 1000).toISOString(),
      });
    });
  });

  it('can be those of certbot, and the files of authorities beside them are left out', async () => {
    const directory = await writeFiles({ 'live/README': 'x', 'live/a.example/README': 'x' });
    const folder = join(directory, 'live/a.example');
    const files = ['fullchain.pem', 'privkey.pem'] as const;
    await makeCertificate(folder, 'DNS:a.example', { subject: '/CN=certbot', files });
    const lego = await make(join(directory, 'live'), 'b.example', 'DNS:b.example');
    for (const name of ['b.example.issuer.crt', 'ca.crt'])
      await writeFile(join(directory, 'live', name), lego?.cert ?? '');
    const desk = await open({ tlsDir: join(directory, 'live') });
    assert.equal(await nameAt(desk, 'a.example'), 'certbot');
    assert.equal(await nameAt(desk, 'b.example'), 'b.example');
  });

  it('are replaced when their files change, and open connections stay open', async () => {
    const directory = await writeFiles();
    await make(directory, 'shop', 'DNS:shop.example', { subject: '/CN=first' });
    const desk = await open({ tlsDir: directory });
    const { gateway } = await desk.listen();
    const { socket } = await connectTo(gateway, { servername: 'shop.example' });
    await make(directory, 'shop', 'DNS:shop.example', { subject: '/CN=second' });
    await eventually(async () => assert.equal(await nameAt(desk, 'shop.example'), 'second'));
    await make(directory, 'new', 'DNS:new.example');
    await eventually(async () => assert.equal(await nameAt(desk, 'new.example'), 'new'));
    await makeFolder(directory, 'folder', 'DNS:folder.example');
    await eventually(async () => assert.equal(await nameAt(desk, 'folder.example'), 'folder'));
    for (const name of ['new.crt', 'new.key']) await rm(join(directory, name));
    await eventually(async () => assert.equal(await nameAt(desk, 'new.example'), 'folder'));
    socket.write('GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n');
    assert.match(String(await once(socket, 'data')), /^HTTP\/1\.1 200 /);
  });

  it('are replaced when Kubernetes swaps the link to a mounted Secret', async () => {
    const directory = await writeFiles();
    const mount = join(directory, 'mount');
    const versions = ['..one', '..two'].map((name) => join(mount, name));
    for (const [index, folder] of versions.entries()) {
      await mkdir(folder, { recursive: true });
      const files = ['tls.crt', 'tls.key'] as const;
      await makeCertificate(folder, 'DNS:shop.example', { subject: `/CN=version${index + 1}`, files });
    }
    await symlink('..one', join(mount, '..data'));
    for (const name of ['tls.crt', 'tls.key']) await symlink(join('..data', name), join(mount, name));
    // As the only certificate of TLS_DIR, and as a folder in it.
    const desks = [await open({ tlsDir: mount }), await open({ tlsDir: directory })];
    for (const desk of desks) assert.equal(await nameAt(desk, 'shop.example'), 'version1');
    await symlink('..two', join(mount, '..next'));
    await rename(join(mount, '..next'), join(mount, '..data'));
    for (const desk of desks)
      await eventually(async () => assert.equal(await nameAt(desk, 'shop.example'), 'version2'));
  });

  it('of TLS_CERT are watched too', async () => {
    const directory = await writeFiles();
    const own = await makeCertificate(directory, 'IP:127.0.0.1', { subject: '/CN=first' });
    const desk = await open({ tlsCert: own?.file, tlsKey: own?.keyFile });
    assert.equal(await nameAt(desk), 'first');
    await makeCertificate(directory, 'IP:127.0.0.1', { subject: '/CN=second' });
    await eventually(async () => assert.equal(await nameAt(desk), 'second'), 50);
  });

  it('stay in use one by one while their files cannot be used, and the log names file, fault and remedy', async () => {
    const directory = await writeFiles();
    const [a, b] = [await make(directory, 'a', 'DNS:a.example'), await make(directory, 'b', 'DNS:b.example')];
    const log: LogLine[] = [];
    const desk = await open({ tlsDir: directory, logger: recordingLogger(log) });
    const errors = () => log.filter(({ level }) => level === 'error').map(({ message }) => message ?? '');

    await writeFile(join(directory, 'a.key'), b?.key ?? '');
    await make(directory, 'b', 'DNS:b.example,DNS:c.example', { subject: '/CN=new' });
    await desk.reload();
    assert.equal(await nameAt(desk, 'a.example'), 'a');
    assert.equal(await nameAt(desk, 'c.example'), 'new');
    assert.match(
      errors().at(-1) ?? '',
      /those that could be used last stay in use:\n.*a\.crt {2}the file and .*a\.key cannot be used \(.*key values mismatch\)\n {4}Use a certificate chain/,
    );

    await writeFile(join(directory, 'a.key'), a?.key ?? '');
    await rm(join(directory, 'a.crt'));
    await desk.reload();
    assert.equal(await nameAt(desk, 'a.example'), 'a');
    assert.match(errors().at(-1) ?? '', /a\.key {2}there is no a\.crt beside it\n {4}Write it, or remove a\.key\.$/);

    await rename(directory, `${directory}-gone`);
    await desk.reload();
    assert.equal(await nameAt(desk, 'a.example'), 'a');
    assert.match(errors().at(-1) ?? '', /the directory cannot be read \(ENOENT\)/);

    await rename(`${directory}-gone`, directory);
    await writeFile(join(directory, 'a.crt'), a?.cert ?? '');
    await desk.reload();
    assert.equal(log.at(-1)?.message, 'certificates reloaded');
    for (const { message, fields } of log)
      for (const text of [a?.key, b?.key])
        assert.ok(!`${message}${JSON.stringify(fields)}`.includes(text?.split('\n')[1] ?? 'none'));
  });

  for (const [what, write, expected] of [
    ['a key without its certificate', (at: string) => rm(join(at, 'a.crt')), /a\.key {2}there is no a\.crt beside it/],
    [
      'a file that is not PEM',
      (at: string) => writeFile(join(at, 'a.crt'), 'x'),
      /a\.crt {2}the file is not a PEM file/,
    ],
    [
      'a certificate without a subjectAltName',
      (at: string) => make(at, 'a', ''),
      /a\.crt {2}the certificate has no subjectAltName.*\n.*clients ignore the CN/,
    ],
    [
      'no directory',
      (at: string) => rm(at, { recursive: true }),
      /the directory cannot be read \(ENOENT\)\n.*Create it/,
    ],
  ] as const)
    it(`with ${what} prevent the start, and the error names the file and the remedy`, async () => {
      const directory = await writeFiles();
      await make(directory, 'a', 'DNS:a.example');
      await write(directory);
      await assert.rejects(open({ tlsDir: directory }), expected);
    });

  it('can come later: without any, the port is open, the log says so, and the first one is used', async () => {
    const directory = await writeFiles();
    const log: LogLine[] = [];
    const desk = await open({ tlsDir: directory, logger: recordingLogger(log) });
    await assert.rejects(nameAt(desk, 'a.example'));
    assert.match(log.find(({ level }) => level === 'warn')?.message ?? '', /the directory has no certificate yet/);
    await make(directory, 'a', 'DNS:a.example');
    await eventually(async () => assert.equal(await nameAt(desk, 'a.example').catch(() => ''), 'a'));
  });

  it('are warned of from thirty days before they expire, once a day, and are notices in the diagnostics', async () => {
    const directory = await writeFiles();
    await make(directory, 'soon', 'DNS:soon.example', { days: 31 });
    await make(directory, 'later', 'DNS:later.example', { days: 300 });
    let nowMs = Date.now();
    const log: LogLine[] = [];
    const desk = await openDesk({ tlsDir: directory, clock: () => nowMs, logger: recordingLogger(log) });
    const warnings = () => log.filter(({ level, message }) => level === 'warn' && message?.includes('the certificate'));
    assert.equal(warnings().length, 0);
    nowMs += 2 * dayMs;
    for (let times = 0; times < 3; times += 1) await desk.reload();
    assert.equal(warnings().length, 1);
    assert.match(
      warnings()[0]?.message ?? '',
      /soon\.crt {2}the certificate expires on 20\d\d-\d\d-\d\d, in 2[89] days\n {4}Renew it/,
    );
    nowMs += dayMs;
    await desk.reload();
    assert.equal(warnings().length, 2);
    assert.ok(!warnings().some(({ message }) => message?.includes('later.crt')));
    const { body } = await callAsDemo(desk, '/gateway/v0/diag/').set('Accept', 'application/json').expect(200);
    const { notices } = body as Diagnostics;
    const messages = notices.map(({ message }) => message).filter((message) => message.startsWith('the certificate'));
    assert.equal(messages.length, 1, messages.join());
  });

  it('are checked by `frontdesk check`, which reports what would prevent a start and what expires soon', async () => {
    const directory = await writeFiles();
    const env = { TLS_DIR: directory, CONFIG_DIR: './config' };
    await make(directory, 'soon', 'DNS:soon.example', { days: 20 });
    const good = await runFrontdesk(['check'], { env });
    assert.equal(good.code, 0);
    assert.match(good.stderr, /soon\.crt {2}the certificate expires on .*, in (?:19|20) days\n {4}Renew it/);
    await writeFile(join(directory, 'soon.key'), 'broken');
    const bad = await runFrontdesk(['check'], { env });
    assert.equal(bad.code, 1);
    assert.match(bad.stderr, /soon\.key {2}the file is not a PEM file/);
  });

  it('need the version in TLS_MIN_VERSION', async () => {
    const directory = await writeFiles();
    await make(directory, 'a', 'DNS:a.example');
    const desk = await open({ tlsDir: directory, tlsMinVersion: '1.3' });
    for (const servername of ['a.example', 'unknown.example']) {
      await assert.rejects(nameAt(desk, servername, { maxVersion: 'TLSv1.2' }), /protocol version/);
      assert.equal(await nameAt(desk, servername), 'a');
    }
    const lenient = await open({ tlsDir: directory });
    assert.equal(await nameAt(lenient, 'a.example', { maxVersion: 'TLSv1.2' }), 'a');
    await assert.rejects(nameAt(lenient, 'a.example', { maxVersion: 'TLSv1.1', minVersion: 'TLSv1.1' }));
  });
});

function respond(ctx: { body: unknown }): void {
  ctx.body = 'ok';
}

function commonName(socket: TLSSocket): string | undefined {
  return socket.getPeerX509Certificate()?.subject.replace(/^CN=/, '');
}
