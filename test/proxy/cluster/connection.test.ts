/** Connections: how long idle ones are kept, and HTTPS: verified by the configured name, always over HTTP/1.1. */
import assert from 'node:assert/strict';
import { createSecureServer } from 'node:http2';
import { getCACertificates, setDefaultCACertificates, type TLSSocket } from 'node:tls';
import { createClusters } from '#proxy';
import { ask, breakersOf, specOf } from '../../support/clusters.ts';
import { testServers } from '../../support/serve.ts';
import { temporaryFiles } from '../../support/temporary-files.ts';
import { type Certificate, makeCertificate } from '../../support/wire/certificate.ts';

describe('an idle connection', () => {
  const servers = testServers();

  /** Returns whether a second request, 100 ms after the first, reuses the connection. */
  async function isKept(keepAlive: string | undefined, idleConnectionMs: number | undefined): Promise<boolean> {
    const sockets = new Set<unknown>();
    const { origin } = await servers.http((req, res) => {
      sockets.add(req.socket);
      if (keepAlive !== undefined) res.setHeader('Keep-Alive', keepAlive);
      res.end('ok');
    });
    const clusters = createClusters();
    servers.later(clusters.close);
    const { cluster } = clusters.acquire(specOf([origin], { idleConnectionMs }));
    await ask(cluster);
    await new Promise((resolve) => setTimeout(resolve, 100));
    await ask(cluster);
    return sockets.size === 1;
  }

  it('is kept as long as the mapping and the Keep-Alive of the service allow', async () => {
    assert.equal(await isKept(undefined, undefined), true);
    assert.equal(await isKept('timeout=1', undefined), false);
    assert.equal(await isKept('timeout=60', 10), false);
  });
});

describe('an HTTPS service', () => {
  const servers = testServers(after);
  const writeFiles = temporaryFiles();
  const trusted = getCACertificates('default');
  let certificate: Certificate | undefined;
  let origin: string;

  /** Starts a server that also offers HTTP/2. It responds with the name in the TLS handshake and the HTTP version. */
  before(async function () {
    certificate = await makeCertificate(await writeFiles(), 'DNS:hotel,IP:127.0.0.1');
    if (certificate === undefined) return this.skip();
    const server = createSecureServer(
      { ...certificate, allowHTTP1: true },
      ({ socket, httpVersion }, res) => void res.end(`${(socket as TLSSocket).servername || 'none'} ${httpVersion}`),
    );
    origin = `https://127.0.0.1:${(await servers.listen(server)).port}`;
  });

  afterEach(() => setDefaultCACertificates(trusted));

  async function askAs(serverName: string | undefined): Promise<readonly string[]> {
    const clusters = createClusters();
    const spec = specOf([origin], { serverName, circuitBreakers: breakersOf({ maxConnections: 1 }) });
    const { cluster } = clusters.acquire(spec);
    const results: string[] = [];
    for (const host of ['one.example', 'other.example']) {
      const asked = ask(cluster, { headers: { host } });
      results.push(
        await asked.then(
          ({ body, isReused }) => `${body} ${isReused}`,
          ({ code }) => code,
        ),
      );
    }
    await clusters.close();
    return results;
  }

  /** `expected`: the name, the version and whether the connection was reused, or the error, for two values of Host. */
  function check(what: string, serverName: string | undefined, expected: readonly string[]) {
    it(what, async () => {
      setDefaultCACertificates([...trusted, certificate?.cert ?? '']);
      assert.deepEqual(await askAs(serverName), expected);
    });
  }

  check('is verified by the configured name, whatever the Host', 'hotel', ['hotel 1.1 false', 'hotel 1.1 true']);
  check('is verified by its address if no name is configured', undefined, ['none 1.1 false', 'none 1.1 true']);
  const wrongName = 'ERR_TLS_CERT_ALTNAME_INVALID';
  check('receives no request when its certificate is for another name', 'car', [wrongName, wrongName]);

  it('receives no request when its certificate is not trusted', async () => {
    assert.deepEqual(await askAs('hotel'), ['DEPTH_ZERO_SELF_SIGNED_CERT', 'DEPTH_ZERO_SELF_SIGNED_CERT']);
  });
});
