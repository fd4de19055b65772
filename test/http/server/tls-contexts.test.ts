/** Which certificate a client gets from a server of HTTPS, by the host that it asks for. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:tls';
import { testServers } from '../../support/serve.ts';
import { temporaryFiles } from '../../support/temporary-files.ts';
import { type Certificate, makeCertificate } from '../../support/wire/certificate.ts';
import { startHttp } from '../../support/wire/http-server.ts';

describe('the certificate of a server', () => {
  const writeFiles = temporaryFiles();
  const servers = testServers();
  const made = new Map<string, Certificate>();

  before(async function () {
    for (const name of ['exact', 'one', 'several', 'more', 'other']) {
      const certificate = await makeCertificate(await writeFiles(), 'DNS:any', { subject: `/CN=${name}` });
      if (certificate === undefined) return this.skip();
      made.set(name, certificate);
    }
  });

  function named(name: string, ...hosts: readonly string[]) {
    const { cert = '', key = '' } = made.get(name) ?? {};
    return { cert, key, hosts };
  }

  /** Returns the CN of the certificate. Rejects if the handshake fails. */
  async function nameFor(port: number, servername: string | undefined): Promise<unknown> {
    const sni = servername === undefined ? {} : { servername };
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...sni });
    await once(socket, 'secureConnect');
    const { CN } = socket.getPeerCertificate().subject;
    socket.destroy();
    return CN;
  }

  const certificates = () => [
    named('several', '**.shop.example'),
    named('one', '*.shop.example'),
    named('more', '**.eu.shop.example', '**.example'),
    named('exact', 'www.shop.example'),
  ];

  for (const [host, expected] of [
    ['www.shop.example', 'exact'],
    ['WWW.Shop.example', 'exact'],
    ['api.shop.example', 'one'],
    ['a.api.shop.example', 'several'],
    ['a.b.c.shop.example', 'several'],
    ['a.eu.shop.example', 'more'],
    ['eu.shop.example', 'one'],
    ['shop.example', 'more'],
    ['shop.test', 'other'],
    [undefined, 'other'],
  ] as const)
    it(`is that of the most specific host, one label for * and several for **: ${host} gets ${expected}`, async () => {
      const tls = { certificates: certificates(), fallback: named('other') };
      const { port } = await startHttp(servers, { tls });
      assert.equal(await nameFor(port, host), expected);
    });

  it('is none without a fallback, so clients that ask for another host or for none cannot connect', async () => {
    const { port, replaceCertificates } = await startHttp(servers, { tls: { certificates: certificates() } });
    for (const host of ['shop.test', undefined]) await assert.rejects(nameFor(port, host), /handshake failure/);
    assert.equal(await nameFor(port, 'www.shop.example'), 'exact');
    replaceCertificates({ certificates: [named('other', 'shop.test')] });
    assert.equal(await nameFor(port, 'shop.test'), 'other');
    await assert.rejects(nameFor(port, 'www.shop.example'), /handshake failure/);
    replaceCertificates({ certificates: [], fallback: named('other') });
    assert.equal(await nameFor(port, undefined), 'other');
    replaceCertificates({ certificates: [] });
    await assert.rejects(nameFor(port, undefined), /handshake failure/);
  });
});
