/** The versions, ciphers and features of TLS that the gateway accepts, as openssl and testssl.sh look at them. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { desksOf, mappingRecord } from '../../support/desks.ts';
import { testServers } from '../../support/serve.ts';
import { temporaryFiles } from '../../support/temporary-files.ts';
import { eventually } from '../../support/waiting.ts';
import { makeCertificate } from '../../support/wire/certificate.ts';
import { offerTo } from '../../support/wire/client-hello.ts';

/** Ciphers that no server should accept, by the number in the registry of cipher suites. */
const weakCiphers = {
  'RC4 with RSA': 0x0005,
  'RC4 with ECDHE and ECDSA': 0xc007,
  'RC4 with ECDHE and RSA': 0xc011,
  '3DES with RSA': 0x000a,
  '3DES with ECDHE and ECDSA': 0xc008,
  '3DES with ECDHE and RSA': 0xc012,
  'DES with RSA': 0x0009,
  'RC4 for export': 0x0003,
  'DES for export': 0x0008,
  'no encryption with RSA': 0x003b,
  'no encryption with ECDHE and ECDSA': 0xc006,
  'no encryption with ECDHE and RSA': 0xc010,
  'no certificate, with DH': 0x00a6,
  'no certificate, with ECDH': 0xc018,
};
const handshakeFailure = 40;

describe('the TLS of the gateway', () => {
  const servers = testServers(after);
  const openDesk = desksOf(servers);
  const writeFiles = temporaryFiles();
  let directory = '';
  let port = 0;
  let strictPort = 0;

  const make = (name: string, keyType: 'ec' | 'rsa', subject = `/CN=${name}`) =>
    makeCertificate(directory, `DNS:${name}.example`, { keyType, subject, files: [`${name}.crt`, `${name}.key`] });

  async function open(tlsMinVersion: '1.2' | '1.3'): Promise<number> {
    const config = { records: [mappingRecord('app', '/', 'app')] };
    const desk = await openDesk({ config, services: { app: respond }, demo: false, tlsDir: directory, tlsMinVersion });
    return (await desk.listen()).gateway.port;
  }

  before(async function () {
    directory = await writeFiles();
    if ((await make('ec', 'ec')) === undefined) this.skip();
    await make('rsa', 'rsa');
    [port, strictPort] = [await open('1.2'), await open('1.3')];
  });

  /** Returns what `openssl s_client` prints. It ends with its input, unless the input is a command for it. */
  function inspect(options: readonly string[], at = port, input = ''): Promise<string> {
    const args = ['s_client', '-connect', `127.0.0.1:${at}`, '-servername', 'ec.example', ...options];
    return new Promise((resolve) => {
      const child = execFile('openssl', args, { timeout: 10_000 }, (_error, stdout, stderr) =>
        resolve(stdout + stderr),
      );
      if (input === '') child.stdin?.end();
      else child.stdin?.write(input);
    });
  }

  // Otherwise openssl itself would not offer an old version.
  const anyVersion = ['-cipher', 'DEFAULT@SECLEVEL=0'];

  for (const [version, option] of [
    ['1.0', '-tls1'],
    ['1.1', '-tls1_1'],
  ] as const)
    it(`refuses version ${version}`, async () => {
      for (const at of [port, strictPort])
        assert.match(await inspect([option, ...anyVersion], at), /alert protocol version/);
    });

  it('accepts version 1.2, unless TLS_MIN_VERSION is 1.3', async () => {
    assert.match(await inspect(['-tls1_2']), /^New, TLSv1\.2, Cipher is ECDHE-ECDSA-AES/m);
    assert.match(await inspect(['-tls1_2'], strictPort), /alert protocol version/);
  });

  it('accepts version 1.3, and prefers it', async () => {
    for (const [options, at] of [
      [['-tls1_3'], port],
      [['-tls1_3'], strictPort],
      [[], port],
    ] as const)
      assert.match(await inspect(options, at), /^New, TLSv1\.3, Cipher is TLS_/m);
  });

  for (const [name, host, good] of [
    ['an EC key', 'ec.example', 0xc02b],
    ['an RSA key', 'rsa.example', 0xc02f],
  ] as const) {
    it(`accepts AES-GCM with ECDHE for ${name}, and never compresses`, async () => {
      const ciphers = [...Object.values(weakCiphers), good];
      assert.deepEqual(await offerTo(port, { host, ciphers }), { cipher: good, compression: 0 });
    });

    it(`refuses weak ciphers for ${name}`, async () => {
      for (const [what, cipher] of Object.entries(weakCiphers))
        assert.deepEqual(await offerTo(port, { host, ciphers: [cipher] }), { alert: handshakeFailure }, what);
    });
  }

  it('supports the extension for secure renegotiation, compresses nothing and staples no OCSP response', async () => {
    const printed = await inspect(['-tls1_2', '-status']);
    assert.match(printed, /^Secure Renegotiation IS supported$/m);
    assert.match(printed, /^Compression: NONE$/m);
    assert.match(printed, /^OCSP response: no response sent$/m);
  });

  it('does not let clients renegotiate', async () => {
    const printed = await inspect(['-tls1_2'], port, 'R\n');
    assert.match(printed, /^RENEGOTIATING$/m);
    assert.match(printed, /no renegotiation/);
  });

  it('has the certificate of the host that openssl asks for, and a new one after it has changed', async () => {
    const subject = async (host: string) => /^subject=CN ?= ?(.*)$/m.exec(await inspect(['-servername', host]))?.[1];
    assert.deepEqual([await subject('ec.example'), await subject('rsa.example')], ['ec', 'rsa']);
    await make('rsa', 'rsa', '/CN=renewed');
    await eventually(async () => assert.equal(await subject('rsa.example'), 'renewed'), 50);
    assert.equal(await subject('ec.example'), 'ec');
  });
});

function respond(ctx: { body: unknown }): void {
  ctx.body = 'ok';
}
