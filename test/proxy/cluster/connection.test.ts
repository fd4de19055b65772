/** HTTPS services: verified by the name in the record and never by one in a request, and called over HTTP/1.1 even when they offer HTTP/2. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createSecureServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createClusters } from '#proxy';
import { ask, specOf } from '../../support/clusters.ts';
import { testServers } from '../../support/serve.ts';
import { temporaryFiles } from '../../support/temporary-files.ts';
import { makeCertificate } from '../../support/wire/certificate.ts';

const program = fileURLToPath(new URL('ask-over-tls.ts', import.meta.url));

describe('an HTTPS service', () => {
  const servers = testServers();
  const writeFiles = temporaryFiles();

  /** Offers HTTP/2 as well; responds with the name in the TLS handshake and the version of HTTP. */
  async function startService(): Promise<{ readonly origin: string; readonly file: string } | undefined> {
    const certificate = await makeCertificate(await writeFiles(), 'DNS:hotel,IP:127.0.0.1');
    if (certificate === undefined) return undefined;
    const server = createSecureServer(
      { ...certificate, allowHTTP1: true },
      ({ socket, httpVersion }, res) => void res.end(`${(socket as TLSSocket).servername || 'none'} ${httpVersion}`),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    servers.later(() => void server.close());
    return { origin: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, file: certificate.file };
  }

  async function askAs(names: readonly string[], origin: string, trusted: string): Promise<unknown> {
    const args = ['--conditions=frontdesk-source', program, origin, ...names];
    const env = { ...process.env, NODE_EXTRA_CA_CERTS: trusted };
    const { stdout } = await promisify(execFile)(process.execPath, args, { env });
    return JSON.parse(stdout);
  }

  it('is called over HTTP/1.1 by the name in the record, whatever Host says, and must have a certificate for that name', async function () {
    this.timeout(30_000);
    const service = await startService();
    if (service === undefined) this.skip();
    assert.deepEqual(await askAs(['hotel', '', 'car'], service.origin, service.file), [
      'hotel 1.1 false',
      'hotel 1.1 true',
      'none 1.1 false',
      'none 1.1 true',
      'ERR_TLS_CERT_ALTNAME_INVALID',
      'ERR_TLS_CERT_ALTNAME_INVALID',
    ]);
  });

  it('gets no request when its certificate is not trusted', async function () {
    this.timeout(30_000);
    const service = await startService();
    if (service === undefined) this.skip();
    const clusters = createClusters();
    servers.later(clusters.close);
    const { cluster } = clusters.acquire(specOf([service.origin], { serverName: 'hotel' }));
    await assert.rejects(ask(cluster), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
  });
});
