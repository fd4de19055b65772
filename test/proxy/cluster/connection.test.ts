/** HTTPS services: verified by the name in the record, and never by one that a request brings. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createServer } from 'node:https';
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

  /** Answers with the name that it was asked for in the handshake. */
  async function startService(): Promise<{ readonly origin: string; readonly file: string } | undefined> {
    const certificate = await makeCertificate(await writeFiles(), 'DNS:hotel,IP:127.0.0.1');
    if (certificate === undefined) return undefined;
    const server = createServer(
      certificate,
      ({ socket }, res) => void res.end((socket as TLSSocket).servername || 'none'),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    servers.later(() => {
      server.closeAllConnections();
      server.close();
    });
    return { origin: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, file: certificate.file };
  }

  async function askAs(names: readonly string[], origin: string, trusted: string): Promise<unknown> {
    const args = ['--conditions=frontdesk-source', program, origin, ...names];
    const env = { ...process.env, NODE_EXTRA_CA_CERTS: trusted };
    const { stdout } = await promisify(execFile)(process.execPath, args, { env });
    return JSON.parse(stdout);
  }

  it('is asked by the name in the record, whatever Host says, and must show that name', async function () {
    const service = await startService();
    if (service === undefined) this.skip();
    assert.deepEqual(await askAs(['hotel', '', 'car'], service.origin, service.file), [
      'hotel false',
      'hotel true',
      'none false',
      'none true',
      'ERR_TLS_CERT_ALTNAME_INVALID',
      'ERR_TLS_CERT_ALTNAME_INVALID',
    ]);
  });

  it('is not asked anything when nobody vouches for it', async function () {
    const service = await startService();
    if (service === undefined) this.skip();
    const clusters = createClusters();
    servers.later(clusters.close);
    const { cluster } = clusters.acquire(specOf([service.origin], { serverName: 'hotel' }));
    await assert.rejects(ask(cluster), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
  });
});
