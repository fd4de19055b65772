/** `frontdesk serve` with several threads: it serves, reloads, reports, recovers and stops like one with a single thread. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import request from 'supertest';
import { createApiKey } from '#auth';
import { authRecord, copyConfig } from '../support/desks.ts';
import {
  type RunOptions,
  runFrontdesk,
  type Server,
  scratch,
  startServer,
} from '../support/programs/frontdesk-process.ts';
import { among, seriesOf } from '../support/scrape.ts';
import { testServers } from '../support/serve.ts';
import { replaceFile, temporaryFiles, yamlOf } from '../support/temporary-files.ts';
import { claimsOf, createKey, providerRecord, signToken, startKeyServer } from '../support/tokens.ts';
import { eventually } from '../support/waiting.ts';
import { expireCertificate, makeCertificate } from '../support/wire/certificate.ts';
import { readEvents } from '../support/wire/event-reader.ts';

describe('frontdesk serve with several threads', () => {
  const writeFiles = temporaryFiles();
  const servers = testServers();

  async function start(args: readonly string[], env: RunOptions['env'] = {}): Promise<Server> {
    const server = await startServer(args, { env: { THREADS: '2', ADMIN_PORT: '0', ...env } });
    servers.later(server.stop);
    return server;
  }

  const perDay = { key: 'x-gateway-test-allow', rate_limit: { unit: 'day', requests_per_unit: 10 } };

  /** Starts the demo with a copy of its configuration and a database file. */
  async function startDemo(env: RunOptions['env'] = {}): Promise<Server & { readonly config: string }> {
    const config = await copyConfig(writeFiles);
    await replaceFile(join(config, 'ratelimit/gateway.yaml'), yamlOf({ domain: 'gateway', descriptors: [perDay] }));
    const DATABASE_URL = `sqlite:${join(config, 'frontdesk.db')}`;
    return { ...(await start(['--demo'], { CONFIG_DIR: config, DATABASE_URL, ...env })), config };
  }

  /** Starts a gateway with mappings that redirect from `/moved` to the host, and forward `/slow` to the test. */
  async function startGateway(env: RunOptions['env'] = {}) {
    const arrivals = new EventEmitter();
    const upstream = await servers.http((_request, response) => void arrivals.emit('request', response));
    const mapping = (name: string, more: object) => {
      return { apiVersion: 'gateway/v1', kind: 'Mapping', name, prefix: `/${name}`, ...more };
    };
    const textFor = (service: string) =>
      yamlOf(
        mapping('slow', { service: upstream.origin, timeout_ms: 20_000 }),
        mapping('moved', { service, host_redirect: true }),
      );
    const CONFIG_DIR = await writeFiles({ 'services/all.yaml': textFor('old') });
    const configure = (text: string) => replaceFile(join(CONFIG_DIR, 'services/all.yaml'), text);
    const server = await start([], { CONFIG_DIR, ...env });
    return { server, arrivals, configure, textFor };
  }

  /** A new connection for each request, so that the system picks a thread for each. */
  const get = ({ gatewayUrl }: Pick<Server, 'gatewayUrl'>, path: string) =>
    request(gatewayUrl).get(path).set('Connection', 'close');

  async function seriesFrom({ adminUrl }: Pick<Server, 'adminUrl'>) {
    return seriesOf((await request(adminUrl).get('/metrics').expect(200)).text);
  }

  /** Returns how many requests were sent. Each thread checks the password when it sees it for the first time. */
  async function untilBothHaveServed(server: Pick<Server, 'gatewayUrl' | 'adminUrl'>): Promise<number> {
    for (let sent = 0; ; ) {
      await get(server, '/v1/hotels').auth('demo', 'demo').expect(200);
      sent += 1;
      if (among(await seriesFrom(server), 'frontdesk_auth_logins_total')['right'] === 2) return sent;
    }
  }

  it('accepts an API key in each of them, and a wrong one in none', async () => {
    const { key, sha256 } = createApiKey();
    const upstream = await servers.http((_request, response) => void response.end());
    const CONFIG_DIR = await writeFiles({
      'services/all.yaml': yamlOf(
        { apiVersion: 'gateway/v1', kind: 'Mapping', name: 'app', prefix: '/', service: upstream.origin },
        authRecord,
      ),
      'users.yaml': yamlOf({ users: [{ name: 'bot', api_keys: [{ name: 'ci', sha256 }] }] }),
    });
    const server = await start([], { CONFIG_DIR });
    const logins = async () => among(await seriesFrom(server), 'frontdesk_auth_logins_total');
    // Each thread checks the key when it sees it for the first time.
    do {
      await get(server, '/').set('X-Api-Key', key).expect(200);
      await get(server, '/')
        .set('X-Api-Key', `${key}x`)
        .expect((response) => assert.notEqual(response.status, 200));
    } while ((await logins())['right'] !== 2);
  });

  it('reads the keys of a JwtProvider in each of them, and sums the tokens', async () => {
    const key = createKey('EdDSA', 'ed');
    const keys = await startKeyServer(servers, [key]);
    const upstream = await servers.http((_request, response) => void response.end());
    const CONFIG_DIR = await writeFiles({
      'services/all.yaml': yamlOf(
        { apiVersion: 'gateway/v1', kind: 'Mapping', name: 'app', prefix: '/', service: upstream.origin },
        { ...authRecord, providers: ['accounts'] },
        providerRecord([], { jwks_uri: keys.uri }),
      ),
    });
    const server = await start([], { CONFIG_DIR });
    const authorization = `Bearer ${signToken(key, claimsOf())}`;
    const tokens = async () => seriesFrom(server);
    // Each thread verifies a token when it sees it for the first time.
    let sent = 0;
    do {
      await get(server, '/').set('Authorization', authorization).expect(200);
      sent += 1;
    } while ((await tokens())['frontdesk_auth_tokens_total accounts valid'] !== 2);
    const series = await tokens();
    assert.equal(series['frontdesk_auth_tokens_total accounts remembered'], sent - 2);
    assert.equal(series['frontdesk_auth_keys accounts'], 1);
    assert.equal(keys.requests(), 2);
  });

  it('serves requests on all of them, and sums their metrics, diagnostics and log lines', async () => {
    const server = await startDemo();
    const sent = await untilBothHaveServed(server);
    const { body } = await get(server, '/gateway/v0/diag/diagnostics.json?filter=hotel')
      .auth('demo', 'demo')
      .expect(200);
    assert.equal(body.routes[0].traffic.requests, sent);
    const { text } = await get(server, '/gateway/v0/metrics').auth('demo', 'demo').expect(200);
    for (const series of [seriesOf(text), await seriesFrom(server)]) {
      assert.equal(series['frontdesk_requests_total hotel 2xx'], sent);
      assert.equal(series['frontdesk_request_duration_seconds_count hotel'], sent);
      assert.equal(series['frontdesk_configuration_generation'], 1);
      assert.equal(series['frontdesk_threads'], 2);
    }
    const { code, stdout, stderr } = await server.stop();
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    assert.match(stdout, /^ {2}on 2 threads$/m);
    const lines = stdout.split('\n').filter((line) => line.startsWith('{'));
    assert.equal(lines.filter((line) => JSON.parse(line).mapping === 'hotel').length, sent);
  });

  it('changes the configuration of all of them, or of none', async () => {
    const { server, configure, textFor } = await startGateway();
    const expectHost = async (host: string) => {
      for (let sent = 0; sent < 30; sent += 1) await get(server, '/moved').expect('Location', `http://${host}/moved`);
    };
    await expectHost('old');
    await configure(textFor('new'));
    server.signal('SIGHUP');
    await server.waitForOutput(/configuration reloaded/);
    await expectHost('new');
    await configure(`${textFor('newer')}\n---\n{ broken`);
    server.signal('SIGHUP');
    await server.waitForOutput(/the configuration has had errors/);
    await expectHost('new');
    const series = await seriesFrom(server);
    assert.deepEqual(among(series, 'frontdesk_configuration_reloads_total'), { success: 1, error: 1 });
    assert.equal(series['frontdesk_configuration_generation'], 2);
    const { body } = await request(server.adminUrl).get('/readyz').expect(200);
    assert.deepEqual([body.status, body.refused.length], ['ready', 1]);
  });

  it('counts limits exactly over all of them, and throttles a guesser as one', async () => {
    const server = await startDemo();
    const statuses = await Promise.all(
      Array.from({ length: 60 }, async () => {
        const { status } = await get(server, '/v1/hotels').auth('demo', 'demo').set('x-gateway-test-allow', 'same');
        return status;
      }),
    );
    assert.equal(statuses.filter((status) => status === 200).length, 10);

    let guesses = 0;
    const guess = async () => (await get(server, '/v1/hotels').auth('guest', `wrong${guesses}`)).status;
    while ((await guess()) === 401) guesses += 1;
    // Another thread learns of a failure a moment later.
    assert.ok(guesses >= 11 && guesses <= 14, `${guesses} guesses`);
  });

  it('shows the events of all of them in a stream', async () => {
    const server = await startDemo();
    const { adminUrl, gatewayUrl } = server;
    const sent = await untilBothHaveServed({ adminUrl, gatewayUrl });
    const headers = { Authorization: `Basic ${btoa('demo:demo')}` };
    const { next, disconnect } = await readEvents(`${gatewayUrl}/gateway/v0/diag/events?filter=hotel`, headers);
    const requests = async () => JSON.parse((await next())?.['data'] ?? '').routes[0].traffic.requests;
    assert.equal(await requests(), sent);
    for (let more = 0; more < 8; more += 1) await get(server, '/v1/hotels').auth('demo', 'demo').expect(200);
    assert.equal(await requests(), sent + 8);
    disconnect();
  });

  it('replaces the certificate of all of them, and logs it once', async function () {
    const directory = await writeFiles();
    const first = await makeCertificate(directory, 'IP:127.0.0.1');
    if (first === undefined) return this.skip();
    const env = { TLS_CERT: first.file, TLS_KEY: join(directory, 'key.pem') };
    const { server } = await startGateway(env);
    const { port } = new URL(server.gatewayUrl);
    const expectCertificate = async (expected: string | undefined) => {
      for (let opened = 0; opened < 20; opened += 1) {
        const socket = connectTls({ port: Number(port), host: '127.0.0.1', rejectUnauthorized: false });
        await once(socket, 'secureConnect');
        assert.equal(socket.getPeerX509Certificate()?.toString(), expected);
        socket.destroy();
      }
    };
    await expectCertificate(first.cert);
    const second = await makeCertificate(directory, 'IP:127.0.0.1');
    server.signal('SIGHUP');
    await server.waitForOutput(/certificates reloaded/);
    await expectCertificate(second?.cert);
    const expires = (await seriesFrom(server))['frontdesk_certificate_expires_timestamp_seconds TLS_CERT'];
    assert.equal(expires, new X509Certificate(second?.cert ?? '').validToDate.getTime() / 1000);
    const { stdout } = await server.stop();
    assert.equal(stdout.match(/certificates reloaded/g)?.length, 1);
  });

  it('uses a new certificate of TLS_DIR in all of them without a signal', async function () {
    const directory = await writeFiles();
    const make = (name: string) =>
      makeCertificate(directory, `DNS:${name}.example`, { files: [`${name}.crt`, `${name}.key`] });
    if ((await make('first')) === undefined) return this.skip();
    const { server } = await startGateway({ TLS_DIR: directory, TLS_MIN_VERSION: '1.3', HTTP_REDIRECT_PORT: '0' });
    const { port } = new URL(server.gatewayUrl);
    const second = await make('second');
    await server.waitForOutput(/certificates reloaded/);
    for (let opened = 0; opened < 20; opened += 1) {
      const options = { port: Number(port), host: '127.0.0.1', servername: 'second.example', ca: second?.cert };
      const socket = connectTls(options);
      await once(socket, 'secureConnect');
      socket.destroy();
    }
    for (let sent = 0; sent < 10; sent += 1)
      await request(server.redirectUrl).get('/a').set('Host', 'second.example').redirects(0).expect(301);
    await replaceFile(join(directory, 'second.key'), 'broken');
    await server.waitForOutput(/those that could be used last stay in use/);
    await request(server.adminUrl)
      .get('/readyz')
      .expect(200, /"part":"certificates"/);
    const { stdout } = await server.stop();
    assert.equal(stdout.match(/certificates reloaded/g)?.length, 1);
    assert.ok(!stdout.includes('PRIVATE KEY'));
  });

  it('warns once of a certificate that has expired', async function () {
    const directory = await writeFiles();
    const certificate = await makeCertificate(directory, 'IP:127.0.0.1');
    if (certificate === undefined) return this.skip();
    await expireCertificate(directory);
    const { server } = await startGateway({ TLS_CERT: certificate.file, TLS_KEY: join(directory, 'key.pem') });
    const { stdout } = await server.stop();
    assert.equal(stdout.match(/the certificate has expired/g)?.length, 1);
  });

  it('keeps serving for DRAIN_MS while no probe succeeds', async () => {
    const { server } = await startGateway({ DRAIN_MS: '2000' });
    server.signal('SIGTERM');
    await server.waitForOutput(/SIGTERM: waiting for requests in flight/);
    await request(server.adminUrl).get('/readyz').expect(503);
    for (let sent = 0; sent < 10; sent += 1) {
      await get(server, '/moved').expect(301);
      await get(server, '/gateway/v0/check_ready').expect(503);
    }
    assert.equal((await server.ended).code, 0);
  });

  /** Ends the thread that receives a request for `/crash`, as an error in any callback would. */
  const crashing = `import { subscribe } from 'node:diagnostics_channel';
    subscribe('http.server.request.start', ({ request }) => {
      if (request.url === '/crash') setImmediate(() => { throw new Error('crashed by the test'); });
    });`;
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(crashing)}`;

  it('replaces one that ends, keeps serving meanwhile, and loses neither its counts nor its log', async () => {
    const { server, configure, textFor } = await startGateway({ NODE_OPTIONS });
    // A new thread starts with the accepted configuration, not with the files.
    await configure('{ broken');
    server.signal('SIGHUP');
    await server.waitForOutput(/the configuration has had errors/);
    for (let sent = 0; sent < 20; sent += 1) await get(server, '/moved').expect(301);
    const requests = async () => among(await seriesFrom(server), 'frontdesk_requests_total')['moved 3xx'];
    assert.equal(await requests(), 20);
    await get(server, '/crash').catch(() => {});
    // Connections that the ended thread had not accepted yet are reset.
    await eventually(() => get(server, '/moved').expect('Location', 'http://old/moved'));
    await server.waitForOutput(/a thread has started in place of one that has ended/);
    assert.ok(Number(await requests()) >= 21);
    for (let sent = 0; sent < 20; sent += 1) await get(server, '/moved').expect('Location', 'http://old/moved');
    await configure(textFor('new'));
    server.signal('SIGHUP');
    await server.waitForOutput(/configuration reloaded/);
    for (let sent = 0; sent < 20; sent += 1) await get(server, '/moved').expect('Location', 'http://new/moved');
    const { code, stdout, stderr } = await server.stop();
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    const lines = stdout
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line));
    assert.ok(lines.filter(({ mapping }) => mapping === 'moved').length >= 61);
    const [lost] = lines.filter(({ msg }) => /^a thread has ended/.test(msg));
    assert.deepEqual([lost.level, lost.err.message, lost.threads], [50, 'crashed by the test', 1]);
  });

  it('says in the diagnostics how many threads it has, and which one has ended', async () => {
    const server = await startDemo({ NODE_OPTIONS });
    const threads = async () =>
      (await get(server, '/gateway/v0/diag/diagnostics.json').auth('demo', 'demo').expect(200)).body.threads;
    assert.deepEqual(await threads(), { configured: 2, serving: 2, ended: [], ended_total: 0 });
    await get(server, '/crash').catch(() => {});
    await server.waitForOutput(/a thread has started in place of one that has ended/);
    const { ended, ...counts } = await eventually(threads);
    assert.deepEqual(counts, { configured: 2, serving: 2, ended_total: 1 });
    assert.deepEqual([ended.length, ended[0].reason], [1, 'crashed by the test']);
    assert.ok([1, 2].includes(ended[0].number));
    assert.match(ended[0].at, /^\d{4}-\d\d-\d\dT/);
  });

  it('is not ready while none is left', async () => {
    const { server } = await startGateway({ NODE_OPTIONS, LOG_LEVEL: 'error' });
    // Both end at the same time only if both are asked, and the first one is replaced at once.
    await eventually(async () => {
      await Promise.all(Array.from({ length: 8 }, () => get(server, '/crash').catch(() => {})));
      const { body } = await request(server.adminUrl).get('/readyz').set('Accept', 'application/json').expect(503);
      assert.equal(body.detail, 'No thread serves requests.');
    });
    await eventually(() => request(server.adminUrl).get('/readyz').expect(200));
    assert.equal((await server.stop()).code, 0);
  });

  it('cannot be started twice on the same port, and with one port for two listeners', async () => {
    const { server } = await startGateway();
    const PORT = new URL(server.gatewayUrl).port;
    const CONFIG_DIR = await writeFiles({ 'services/all.yaml': '# None.\n' });
    const second = await runFrontdesk(['serve'], { env: { ...scratch, THREADS: '2', CONFIG_DIR, PORT } });
    assert.deepEqual([second.code, second.stdout], [1, '']);
    assert.match(
      second.stderr,
      /^frontdesk: cannot listen on 127.0.0.1:\d+ \(EADDRINUSE\): another process uses the port/,
    );
    await server.stop();
    const env = { ...scratch, THREADS: '2', CONFIG_DIR, PORT, ADMIN_PORT: PORT };
    const { stderr } = await runFrontdesk(['serve'], { env });
    assert.equal(stderr, `frontdesk: PORT and ADMIN_PORT are both ${PORT}: give one of them another port\n`);
  });

  it('finishes all requests in flight on SIGTERM', async () => {
    const { server, arrivals } = await startGateway();
    const responses: ServerResponse[] = [];
    const fetched: Promise<Response>[] = [];
    for (let sent = 0; sent < 16; sent += 1) {
      const arrival = once(arrivals, 'request');
      fetched.push(fetch(`${server.gatewayUrl}/slow`, { headers: { connection: 'close' } }));
      const [response] = (await arrival) as [ServerResponse];
      responses.push(response);
    }
    assert.equal((await seriesFrom(server))['frontdesk_requests_in_flight slow'], 16);
    server.signal('SIGTERM');
    await server.waitForOutput(/SIGTERM: waiting for requests in flight/);
    await eventually(() => assert.rejects(async () => get(server, '/gateway/v0/check_alive')));
    for (const response of responses) response.end('done');
    for (const one of fetched) assert.equal(await (await one).text(), 'done');
    const { code, stderr } = await server.ended;
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
  });

  it('ends at once on a second signal', async () => {
    const { server, arrivals } = await startGateway();
    const arrival = once(arrivals, 'request');
    const fetched = fetch(`${server.gatewayUrl}/slow`);
    fetched.catch(() => {});
    await arrival;
    server.signal('SIGTERM');
    await server.waitForOutput(/SIGTERM: waiting for requests in flight/);
    server.signal('SIGINT');
    assert.equal((await server.ended).code, 1);
    await assert.rejects(fetched);
  });

  it('has one thread if the database is in memory, and says so', async () => {
    const server = await start(['--demo'], { CONFIG_DIR: await copyConfig(writeFiles) });
    for (let sent = 0; sent < 8; sent += 1) await get(server, '/v1/hotels').auth('demo', 'demo').expect(200);
    assert.equal(among(await seriesFrom(server), 'frontdesk_auth_logins_total')['right'], 1);
    const { stdout } = await server.stop();
    assert.match(stdout, /requests are served by one thread: each would have its own database in memory/);
  });

  it('is a setting of `serve` alone: other commands ignore it', async () => {
    const { code, stderr } = await runFrontdesk(['check', '--demo'], { env: { ...scratch, THREADS: '2' } });
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
  });

  it('reports why it cannot start, once', async () => {
    const directory = await writeFiles({ 'database/file': '' });
    const env = { ...scratch, THREADS: '2', DATABASE_URL: `sqlite:${directory}/database` };
    const { code, stdout, stderr } = await runFrontdesk(['serve', '--demo'], { env });
    assert.deepEqual([code, stdout], [1, '']);
    assert.equal(stderr.match(/^frontdesk: /gm)?.length, 1);
    assert.match(stderr, /DATABASE_URL/);
  });
});
