/** Connections: how long they are kept, and HTTPS: verified by the configured name, always over HTTP/1.1. */
import assert from 'node:assert/strict';
import { createSecureServer } from 'node:http2';
import type { Socket } from 'node:net';
import { getCACertificates, setDefaultCACertificates, type TLSSocket } from 'node:tls';
import { createClusters } from '#proxy';
import { ask, breakersOf, createManualTime, specOf } from '../../support/clusters.ts';
import { testServers } from '../../support/serve.ts';
import { temporaryFiles } from '../../support/temporary-files.ts';
import { closeOf, createDeferred, eventually } from '../../support/waiting.ts';
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

describe('a connection', () => {
  const servers = testServers();
  const lifetimeMs = 1000;

  /** Starts a service that reports the number of its connection. It responds when `respond` resolves. */
  async function connect(random: number, respond = Promise.resolve()) {
    const time = createManualTime();
    const sockets: { readonly socket: Socket; readonly closed: Promise<void> }[] = [];
    const { origin } = await servers.http(async ({ socket }, res) => {
      let number = sockets.findIndex((one) => one.socket === socket);
      if (number === -1) number = sockets.push({ socket, closed: closeOf(socket) }) - 1;
      await respond;
      res.end(String(number));
    });
    const clusters = createClusters({ ...time, random: () => random });
    servers.later(clusters.close);
    const circuitBreakers = breakersOf({ maxConnections: 1 });
    const { cluster } = clusters.acquire(specOf([origin], { connectionLifetimeMs: lifetimeMs, circuitBreakers }));
    return { time, sockets, get: async () => (await ask(cluster)).body };
  }

  /** Each gateway shortens a lifetime at random, by up to a tenth. */
  function check(random: number, keptMs: number) {
    it(`gets no new request after its lifetime, with ${keptMs} ms at random ${random}`, async () => {
      const { time, sockets, get } = await connect(random);
      assert.equal(await get(), '0');
      time.advance(keptMs - 1);
      assert.equal(await get(), '0');
      time.advance(1);
      assert.equal(await get(), '1');
      await sockets[0]?.closed;
    });
  }

  check(0, lifetimeMs);
  check(0.5, 950);

  it('finishes its request after its lifetime, and the next in the queue gets a new connection', async () => {
    const { promise, resolve } = createDeferred();
    const { time, sockets, get } = await connect(0, promise);
    const responses = Promise.all([get(), get()]);
    await eventually(() => assert.equal(sockets.length, 1));
    time.advance(lifetimeMs);
    resolve();
    assert.deepEqual(await responses, ['0', '1']);
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
