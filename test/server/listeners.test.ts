/** The listeners of a server: their addresses, errors when opening them, and how they close. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { Agent, get, type IncomingMessage } from 'node:http';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { get as getHttps } from 'node:https';
import { type AddressInfo, connect, Server, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { mock } from 'node:test';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import type { Context } from 'koa';
import request from 'supertest';
import { createFrontdesk } from '../../src/index.ts';
import { call, demoRecord, desksOf, mappingRecord } from '../support/desks.ts';
import { type LogLine, recordingLogger } from '../support/edge.ts';
import { freePort } from '../support/programs/free-port.ts';
import { scrape } from '../support/scrape.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { closeOf, createHeldMiddleware, eventually } from '../support/waiting.ts';
import { makeCertificate } from '../support/wire/certificate.ts';
import { createReflectionClient } from '../support/wire/reflection-client.ts';

const dayMs = 86_400_000;

describe('listeners', () => {
  const servers = testServers();
  const open = desksOf(servers);

  describe('listen', () => {
    const writeFiles = temporaryFiles();

    /** The options of a desk with a certificate, or undefined if this machine cannot make one. */
    async function certified() {
      const directory = await writeFiles();
      const certificate = await makeCertificate(directory, 'IP:127.0.0.1');
      const files = { tlsCert: join(directory, 'cert.pem'), tlsKey: join(directory, 'key.pem') };
      return certificate && { directory, certificate, files };
    }

    it('opens each listener, returns the addresses, and returns the same when called again', async () => {
      const desk = await open({ ratelimitHttpPort: 0 });
      const [listeners, again] = await Promise.all([desk.listen(), desk.listen()]);
      assert.deepEqual(again, listeners);
      const { gateway, auth, ratelimit, ratelimitHttp } = listeners;
      const get = (url = '', path = '') => request(url).get(path).auth('demo', 'demo');
      await get(gateway.url, '/v1/hotels').expect(200);
      await get(auth.url, '/any').expect('X-Travel-User', 'demo');
      assert.match(ratelimit.url, /^grpc:\/\/127\.0\.0\.1:\d+$/);
      assert.equal(ratelimitHttp.url, `http://127.0.0.1:${ratelimitHttp.port}`);
      await get(ratelimitHttp.url, '/healthcheck').expect(200, 'OK');
    });

    const hosts = [
      ['0.0.0.0', '127.0.0.1'],
      ['::', '[::1]'],
      ['::1', '[::1]'],
      ['localhost', 'localhost'],
    ] as const;
    for (const [host, inUrl] of hosts) {
      it(`returns URLs that clients can use when listening on ${host}`, async function () {
        if (host.includes(':') && !hasIpv6()) this.skip();
        const { gateway, auth, ratelimit } = await (await open({ host, allowDemoUsers: true })).listen();
        assert.equal(gateway.url, `http://${inUrl}:${gateway.port}`);
        assert.equal(auth.url, `http://${inUrl}:${auth.port}`);
        assert.equal(ratelimit.url, `grpc://${inUrl}:${ratelimit.port}`);
        assert.deepEqual([gateway.host, auth.host, ratelimit.host], [host, host, host]);
        for (const one of [gateway, auth]) assert.notEqual((await fetch(one.url)).status, 500);
      });
    }

    it('serves HTTPS with a certificate and its key, and uses https in every URL', async function () {
      const tls = await certified();
      if (tls === undefined) return this.skip();
      const { gateway } = await (await open({ ...tls.files, only: ['api'] })).listen();
      assert.match(gateway.url, /^https:/);
      const asked = getHttps(`${gateway.url}/v1/messages/1`, { ca: tls.certificate.cert, agent: false });
      const [answer]: IncomingMessage[] = await once(asked, 'response');
      let text = '';
      for await (const chunk of answer ?? []) text += chunk;
      assert.equal(JSON.parse(text).url, `${gateway.url}/v1/messages/1`);
    });

    for (const [fault, offsetMs] of [
      ['has expired', 91 * dayMs],
      ['is not valid yet', -dayMs],
    ] as const) {
      it(`warns about a certificate that ${fault}`, async function () {
        const tls = await certified();
        if (tls === undefined) return this.skip();
        const log: LogLine[] = [];
        const desk = await open({ ...tls.files, clock: () => Date.now() + offsetMs, logger: recordingLogger(log) });
        await desk.listen();
        const warnings = log.filter(({ level, message }) => level === 'warn' && message?.includes('certificate'));
        assert.deepEqual(
          warnings.map(({ message }) => message?.includes(fault)),
          [true],
        );
      });
    }

    it('uses a reloaded certificate for new connections and its metric, unless it is unusable', async function () {
      const tls = await certified();
      if (tls === undefined) return this.skip();
      const { directory, certificate: first, files } = tls;
      const log: LogLine[] = [];
      const desk = await open({ ...files, only: ['api'], adminPort: 0, logger: recordingLogger(log) });
      const port = (await desk.listen()).gateway.port;
      const opened: TLSSocket[] = [];
      servers.later(() => opened.forEach((socket) => void socket.destroy()));
      const seen = async () => {
        const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
        opened.push(socket);
        await once(socket, 'secureConnect');
        return socket.getPeerX509Certificate()?.toString();
      };
      assert.equal(await seen(), first.cert);
      const second = await makeCertificate(directory, 'IP:127.0.0.1');
      await desk.reload();
      assert.equal(await seen(), second?.cert);
      await writeFile(files.tlsKey, first.key);
      await desk.reload();
      assert.equal(await seen(), second?.cert);
      assert.match(log.find(({ level }) => level === 'error')?.message ?? '', /tlsKey cannot be used/);
      const expires = (await scrape(desk))['frontdesk_certificate_expires_timestamp_seconds TLS_CERT'];
      assert.equal(expires, new X509Certificate(second?.cert ?? '').validToDate.getTime() / 1000);
      await writeFile(files.tlsKey, second?.key ?? '');
      for (let times = 0; times < 2; times += 1) await desk.reload();
      assert.equal(log.filter(({ message }) => message === 'certificates reloaded').length, 2);
      opened[0]?.write('GET /v1/messages/1 HTTP/1.1\r\nHost: a\r\n\r\n');
      assert.match(String(await once(opened[0] as TLSSocket, 'data')), /^HTTP\/1\.1 200 /);
    });

    for (const option of ['port', 'authPort', 'ratelimitPort', 'ratelimitHttpPort', 'adminPort'] as const) {
      it(`names ${option} if that port is taken, and opens no listener`, async () => {
        const { port } = await servers.tcp(() => {});
        const free = { ratelimitHttpPort: 0, adminPort: 0 };
        const desk = await open({ ...free, [option]: port });
        const listened = mock.method(Server.prototype, 'listen');
        await assert.rejects(
          desk.listen(),
          new RegExp(`127\\.0\\.0\\.1:${port} \\(EADDRINUSE\\): another process .* with ${option} .*$`),
        );
        listened.mock.restore();
        for (const one of listened.mock.calls) assert.equal((one.this as Server).listening, false);
      });
    }

    it('opens the admin port last, so that a probe succeeds only when all other ports are open', async () => {
      const desk = await open({ ratelimitHttpPort: 0, adminPort: 0 });
      const listened = mock.method(Server.prototype, 'listen');
      const { admin } = await desk.listen();
      listened.mock.restore();
      const opened = listened.mock.calls.map(({ this: server }) => ((server as Server).address() as AddressInfo).port);
      assert.equal(opened.length, 5);
      assert.equal(opened.at(-1), admin.port);
    });

    it('names both options if they have the same port', async () => {
      const port = await freePort();
      const desk = await open({ port, authPort: port });
      const message = `authPort and port are both ${port}: give one of them another port`;
      await assert.rejects(desk.listen(), { message });
    });

    it('can be called again after a failure', async () => {
      const desk = await open();
      const listened = mock.method(Server.prototype, 'listen', throwing('not yet'), { times: 1 });
      await assert.rejects(desk.listen(), /not yet/);
      listened.mock.restore();
      const { gateway } = await desk.listen();
      assert.equal(await refuses(gateway.port), false);
    });

    it('names the option if the address does not belong to this machine', async () => {
      const desk = await open({ host: '192.0.2.1', allowDemoUsers: true });
      await assert.rejects(desk.listen(), /192\.0\.2\.1:0 \(EADDRNOTAVAIL\).* host$/);
      const authOnly = await open({ host: '192.0.2.1', allowDemoUsers: true, only: ['auth'] });
      await assert.rejects(
        authOnly.listen(),
        /192\.0\.2\.1:0 \(EADDRNOTAVAIL\): this machine has no such address: choose .* host$/,
      );
    });
  });

  it('can have separate addresses, and warn when passwords are sent unencrypted', async () => {
    const log: LogLine[] = [];
    const hosts = { authHost: '127.0.0.2', ratelimitHost: '127.0.0.3', adminHost: '127.0.0.4' };
    const desk = await open({ ...hosts, ratelimitHttpPort: 0, adminPort: 0, logger: recordingLogger(log) });
    const { gateway, auth, ratelimit, ratelimitHttp, admin } = await desk.listen();
    const listening = [gateway, auth, ratelimit, ratelimitHttp, admin].map((one) => one.host);
    assert.deepEqual(listening, ['127.0.0.1', '127.0.0.2', '127.0.0.3', '127.0.0.3', '127.0.0.4']);
    await request(auth.url).get('/any').auth('demo', 'demo').expect(200);
    await request(admin.url).get('/metrics').expect(200);
    const warned = () => log.filter(({ level, fields }) => level === 'warn' && 'listener' in fields);
    assert.deepEqual(warned(), []);

    // This configuration has the published passwords.
    const config = './config';
    const exposed = await open({ config, authHost: '0.0.0.0', allowDemoUsers: true, logger: recordingLogger(log) });
    await exposed.listen();
    assert.deepEqual(
      warned().map(({ fields }) => fields),
      [{ listener: 'auth', host: '0.0.0.0' }],
    );
    assert.match(warned()[0]?.message ?? '', /, or set authHost or ratelimitHost to a loopback address$/);
    await assert.rejects(open({ config, authHost: '192.0.2.1' }), /authHost=192\.0\.2\.1 is open to the network/);
    const absent = await open({ ratelimitHost: '192.0.2.1' });
    await assert.rejects(absent.listen(), /192\.0\.2\.1:0 \(EADDRNOTAVAIL\).* ratelimitHost$/);
  });

  for (const [what, options, expected] of [
    ['a gateway on all addresses without TLS', { host: '0.0.0.0' }, [/open on all addresses without TLS: set tlsCert/]],
    ['a gateway on loopback', {}, []],
    [
      'a service that believes every client',
      { host: '0.0.0.0', only: ['hotel'] },
      [/names the user: set trustedProxies/],
    ],
    ['a service with trusted proxies', { host: '0.0.0.0', only: ['hotel'], trustedProxies: ['10.0.0.1'] }, []],
    ['a service on loopback', { only: ['hotel'] }, []],
  ] as const)
    it(`${expected.length === 0 ? 'do not warn' : 'warn'} about ${what}`, async () => {
      const log: LogLine[] = [];
      const hosts = { authHost: '127.0.0.1', ratelimitHost: '127.0.0.1', allowDemoUsers: true };
      const desk = await open({ ...hosts, ...options, logger: recordingLogger(log) });
      await desk.listen();
      const warned = log.filter(
        ({ level, message }) => level === 'warn' && /without TLS|every client/.test(message ?? ''),
      );
      assert.equal(warned.length, expected.length);
      for (const [index, pattern] of expected.entries()) assert.match(warned[index]?.message ?? '', pattern);
    });

  describe('share a connection limit', () => {
    let held: number;
    const holding = {
      config: { records: [mappingRecord('holding', '/', 'holding')], users: [demoRecord] },
      services: { holding: (ctx: Context) => (ctx.path === '/held' ? neverResponds() : undefined) },
      shutdownTimeoutMs: 1,
    };

    function neverResponds(): Promise<void> {
      held += 1;
      return new Promise(() => {});
    }

    beforeEach(() => {
      held = 0;
    });

    /** Opens connections with a request that never gets a response. */
    async function hold(port: number, count: number): Promise<readonly Socket[]> {
      const sockets = Array.from({ length: count }, () => connect(port, '127.0.0.1').on('error', () => {}));
      for (const socket of sockets) socket.write('GET /held HTTP/1.1\r\nHost: a\r\n\r\n');
      await eventually(() => assert.equal(held, count));
      return sockets;
    }

    it('except the admin port, which shows how many were refused', async () => {
      const desk = await open({ ...holding, connectionsMax: 3, adminPort: 0 });
      const { gateway, auth, ratelimit, admin } = await desk.listen();
      const busy = await hold(gateway.port, 3);
      const metrics = () => request(admin.url).get('/metrics');
      await eventually(async () => assert.match((await metrics()).text, /^frontdesk_connections 3$/m));
      for (const one of [gateway, auth]) await request(one.url).get('/').expect(503).expect('Retry-After', '1');
      const refused = connect(ratelimit.port, '127.0.0.1').on('error', () => {});
      await closeOf(refused);
      assert.match(
        (await metrics()).text,
        /^frontdesk_connections_max 3\n[\s\S]*^frontdesk_connections_refused_total 3$/m,
      );
      for (const socket of busy) socket.destroy();
      await eventually(() => request(gateway.url).get('/').expect(404));
    });

    it('of which each keeps a part, however many requests of another are in progress', async () => {
      const { gateway, auth, ratelimit } = await (await open({ ...holding, connectionsMax: 40 })).listen();
      const busy = await hold(gateway.port, 36);
      await request(gateway.url).get('/').expect(503);
      for (let times = 0; times < 3; times += 1)
        await request(auth.url).get('/any').auth('demo', 'demo').expect('X-Travel-User', 'demo');
      assert.equal(await grpcStatus(connectHttp2(ratelimit.url.replace('grpc', 'http'))), '0');
      for (const socket of busy) socket.destroy();
    });

    it('of which the gateway keeps half, however many connections another one has', async () => {
      const { gateway, ratelimit } = await (await open({ connectionsMax: 4 })).listen();
      const sessions = Array.from({ length: 6 }, () => connectHttp2(ratelimit.url.replace('grpc', 'http')));
      for (const session of sessions) session.on('error', () => {});
      await eventually(() => assert.equal(sessions.filter(({ destroyed }) => destroyed).length, 4));
      await request(gateway.url).get('/v1/messages/1').expect(200);
      for (const session of sessions) session.destroy();
    });

    it('of which connections to the rate-limit port that have made a call keep theirs', async () => {
      const { ratelimit } = await (await open({ connectionsMax: 12 })).listen();
      const session = connectHttp2(ratelimit.url.replace('grpc', 'http'));
      assert.equal(await grpcStatus(session), '0');
      const silent = Array.from({ length: 12 }, () => connect(ratelimit.port, '127.0.0.1').resume());
      await Promise.all(silent.slice(0, 7).map(closeOf));
      assert.equal(await grpcStatus(session), '0');
      for (const one of [session, ...silent]) one.destroy();
    });
  });

  describe('close', () => {
    it('waits for requests in flight; until then gRPC health and the services of the gateway respond', async () => {
      const { hold, reached, release } = createHeldMiddleware();
      const ended: string[] = [];
      const slow = (ctx: Context) => hold(ctx).then(() => void ended.push('slow'));
      const desk = await open({ config: { records: [mappingRecord('slow', '/slow', 'slow')] }, services: { slow } });
      const { gateway, auth, ratelimit } = await desk.listen();
      const client = createReflectionClient(ratelimit.url);
      assert.deepEqual(await client.checkHealth(''), { status: 'SERVING' });
      const answered = fetch(`${gateway.url}/slow`).then((answer) => answer.text());
      await reached;

      const closing = [desk.close(), desk.close()].map((one) => one.then(() => void ended.push('closed')));
      await eventually(async () => assert.ok(await refuses(gateway.port)));
      assert.deepEqual(await client.checkHealth(''), { status: 'NOT_SERVING' });
      for (const one of [auth, ratelimit]) assert.equal(await refuses(one.port), false);
      assert.deepEqual(ended, []);

      release();
      await Promise.all(closing);
      assert.equal(await answered, '/');
      assert.deepEqual(ended, ['slow', 'closed', 'closed']);
      for (const one of [auth, ratelimit]) assert.equal(await refuses(one.port), true);
      client.close();
    });

    it('waits for requests in flight after a listen that failed halfway', async () => {
      const { hold, reached, release } = createHeldMiddleware();
      const config = { records: [mappingRecord('slow', '/slow', 'slow')] };
      const desk = await open({ config, services: { slow: hold }, shutdownTimeoutMs: 1 });
      const listened = mock.method(Server.prototype, 'listen');
      listened.mock.mockImplementationOnce(throwing('not yet'), 1);
      await assert.rejects(desk.listen(), /not yet/);
      listened.mock.restore();
      const { gateway } = await desk.listen();
      const idle = connect(gateway.port, '127.0.0.1').resume();
      await once(idle, 'connect');
      const answered = fetch(`${gateway.url}/slow`).then((answer) => answer.text());
      await reached;

      const closed = desk.close({ withinMs: Number.POSITIVE_INFINITY });
      // Idle connections are closed after a grace period, or at the deadline together with the requests.
      await closeOf(idle);
      release();
      assert.equal(await answered, '/');
      await closed;
    });

    it('takes as long as the requests in flight, despite idle, silent and busy connections', async () => {
      const { hold, reached, release } = createHeldMiddleware();
      const config = { records: [mappingRecord('slow', '/slow', 'slow')] };
      // Longer than the time-out of the test.
      const desk = await open({ config, services: { slow: hold }, shutdownTimeoutMs: 60_000, ratelimitHttpPort: 0 });
      const listeners = Object.values(await desk.listen()).filter((one) => one !== undefined);
      const urlOf = (index: number) => listeners[index]?.url.replace('grpc:', 'http:') ?? '';
      const [limits, limitsHttp, auth, gateway] = [urlOf(0), urlOf(1), urlOf(2), urlOf(3)];
      const channel = await openChannel(limits);
      const silent = listeners.map(({ port }) => connect(port, '127.0.0.1'));
      await Promise.all(silent.map((socket) => once(socket, 'connect')));
      const agent = new Agent({ keepAlive: true });
      const paths = [`${gateway}/other`, `${auth}/`, `${limitsHttp}/healthcheck`];
      const pools = paths.map((url) => askUntilRefused(url, agent));
      const answered = fetch(`${gateway}/slow`).then((answer) => answer.text());
      await reached;
      await eventually(() => assert.ok(pools.every(({ answers }) => answers() >= 20)));

      const closed = desk.close();
      release();
      assert.equal(await answered, '/');
      await Promise.all([closed, channel.goneAway]);
      // Each connection was closed by a response with `Connection: close`, and the next one was refused.
      for (const pool of pools) assert.deepEqual(await pool.ended, { code: 'ECONNREFUSED', isReused: false });
      await Promise.all(silent.map((socket) => socket.closed || closeOf(socket.resume())));
      channel.close();
      agent.destroy();
    });

    it('takes at most SHUTDOWN_TIMEOUT_MS, even if requests hang on several listeners', async () => {
      const { hold, reached } = createHeldMiddleware();
      const config = { records: [mappingRecord('hang', '/hang', 'hang')] };
      const desk = await open({ config, services: { hang: hold }, shutdownTimeoutMs: 2000, ratelimitHttpPort: 0 });
      const { gateway, ratelimitHttp } = await desk.listen();
      const begin = (port = 0, ...lines: readonly string[]) => {
        const socket = connect(port, '127.0.0.1').on('error', () => {});
        socket.write([...lines, 'Host: a', '', ''].join('\r\n'));
        return socket;
      };
      const hangingSocket = begin(gateway.port, 'GET /hang HTTP/1.1');
      const expect = 'Expect: 100-continue';
      const json = ['POST /json HTTP/1.1', 'Content-Type: application/json', 'Content-Length: 2', expect];
      const jsonSocket = begin(ratelimitHttp.port, ...json);
      await Promise.all([reached, once(jsonSocket, 'data')]);

      const startedAtMs = performance.now();
      const closed = desk.close();
      const cut = [hangingSocket, jsonSocket].map(closeOf);
      await Promise.race(cut);
      assert.ok(performance.now() - startedAtMs > 1900);
      // If each listener had its own deadline, the second one would be cut off later.
      const later = setTimeout(() => assert.fail('the second listener has a separate time'), 1900);
      await Promise.all([...cut, closed]);
      clearTimeout(later);
    });

    it('cuts off requests from another app at the deadline', async () => {
      const asked: string[] = [];
      const service = await servers.http(({ url = '' }, res) => {
        asked.push(url);
        if (url === '/events') res.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: 1\n\n');
      });
      const mapping = mappingRecord('slow', '/', service.origin, { circuit_breakers: { max_connections: 2 } });
      const desk = await open({ config: { records: [mapping] }, demo: false, shutdownTimeoutMs: 60 });
      const host = await servers.http(desk.app.callback());
      const events = await fetch(`${host.origin}/events`);
      const cutOff = assert.rejects(events.text());
      const answers = [1, 2].map(() => fetch(`${host.origin}/never`));
      await eventually(() => assert.equal(asked.length, 2));

      await desk.close();
      await cutOff;
      for (const { status } of await Promise.all(answers)) assert.equal(status, 503);
      assert.deepEqual(asked, ['/events', '/never']);
    });

    it('is final, even while listeners are being opened: 503 for requests, and listen rejects', async () => {
      const desk = await open();
      const opening = desk.listen();
      await desk.close();
      await desk.close();
      assert.equal(await refuses((await opening).gateway.port), true);
      await call(desk, '/v1/messages/1').expect(503, /The server is stopping\./);
      await assert.rejects(desk.listen(), /^Error: this frontdesk is closed/);
    });

    it('closes everything else if closing one part fails, and rejects with its error', async () => {
      const desk = await createFrontdesk({
        port: 0,
        authPort: 0,
        ratelimitPort: 0,
        databaseUrl: 'sqlite::memory:',
        demo: true,
      });
      const { gateway, auth, ratelimit } = await desk.listen();
      const cannotClose = mock.method(Server.prototype, 'close', throwing('no close today'), { times: 1 });
      await assert.rejects(desk.close(), /no close today/);
      const left = cannotClose.mock.calls[0]?.this as Server;
      cannotClose.mock.restore();
      assert.equal((left.address() as AddressInfo).port, gateway?.port);
      await new Promise((resolve) => left.close(resolve));
      for (const one of [auth, ratelimit]) assert.equal(await refuses(one?.port ?? 0), true);
      await call(desk, '/v1/messages/1').expect(503, /The server is stopping\./);
    });
  });
});

/** Opens a gRPC channel and uses it, and opens an HTTP/2 connection without requests. */
async function openChannel(url: string) {
  const client = createReflectionClient(url.replace('http:', 'grpc:'));
  for (let count = 0; count < 20; count += 1) await client.checkHealth('');
  const session = connectHttp2(url);
  const goneAway = once(session, 'goaway');
  await once(session, 'remoteSettings');
  return {
    goneAway,
    close() {
      client.close();
      session.destroy();
    },
  };
}

/** Sends requests continuously, four at a time, on keep-alive connections. */
function askUntilRefused(url: string, agent: Agent) {
  let answers = 0;
  async function ask(): Promise<{ code: string | undefined; isReused: boolean }> {
    for (;;) {
      const asked = get(url, { agent });
      try {
        const [response] = (await once(asked, 'response')) as [IncomingMessage];
        await once(response.resume(), 'end');
        answers += 1;
      } catch (error) {
        return { code: (error as NodeJS.ErrnoException).code, isReused: asked.reusedSocket };
      }
    }
  }
  const asking = Array.from({ length: 4 }, ask);
  const ended = Promise.all(asking).then((ends) => ends.find(({ code }) => code !== 'ECONNREFUSED') ?? ends[0]);
  return { answers: () => answers, ended };
}

function throwing(message: string): () => never {
  return () => {
    throw new Error(message);
  };
}

/** Resolves to whether connections to the port are refused. */
function refuses(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(false);
    });
    socket.once('error', () => resolve(true));
  });
}

function hasIpv6(): boolean {
  return Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === '::1'));
}

/** The gRPC status of a health check. */
async function grpcStatus(session: ClientHttp2Session): Promise<unknown> {
  const headers = { 'content-type': 'application/grpc', te: 'trailers' };
  const stream = session.request({ ':method': 'POST', ':path': '/grpc.health.v1.Health/Check', ...headers });
  stream.resume().end(Buffer.alloc(5));
  const [trailers] = await once(stream, 'trailers');
  return trailers['grpc-status'];
}
