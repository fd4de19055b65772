/** `frontdesk serve`: what it prints, what it logs, and how it handles each signal. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { closeSync, existsSync, openSync } from 'node:fs';
import { rename, symlink, writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import request from 'supertest';
import { formatAddresses } from '../../src/cli/serve.ts';
import { mappingRecord } from '../support/desks.ts';
import { built } from '../support/programs/built.ts';
import {
  type RunOptions,
  runFrontdesk,
  type Server,
  scratch,
  startByNpm,
  startServer,
  startSplit,
} from '../support/programs/frontdesk-process.ts';
import { seriesOf } from '../support/scrape.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles, yamlOf } from '../support/temporary-files.ts';
import { eventually } from '../support/waiting.ts';
import { makeCertificate } from '../support/wire/certificate.ts';

const path = '/v1/hotels/bookings/0b6f1c52-7d7e-4a57-9d43-5f0f6c1d2a01';

const root = fileURLToPath(new URL('../..', import.meta.url));

describe('frontdesk serve', () => {
  const writeFiles = temporaryFiles();
  const servers = testServers();

  const start = async (args: readonly string[], env: RunOptions['env'] = {}) => {
    const server = await startServer(args, { env });
    servers.later(server.stop);
    return server;
  };

  it('logs that a change of settings.env needs a restart', async () => {
    const cwd = await writeFiles({
      'config/services/app.yaml': yamlOf(mappingRecord('app', '/', 'http://127.0.0.1:1')),
    });
    const server = await startServer([], { cwd });
    servers.later(server.stop);
    let changes = 0;
    // The first change may come before the first look at the file.
    await eventually(async () => {
      await writeFile(join(cwd, 'config/settings.env'), `LOG_LEVEL=warn # ${++changes}\n`);
      assert.match(server.stdout(), /settings\.env","msg":"settings\.env has changed: restart to use it"/);
    }, 500);
  });

  for (const THREADS of ['1', '2'])
    it(`names all ports that are in use at once, with THREADS=${THREADS}`, async () => {
      const first = await start(['--demo']);
      const portOf = (url: string) => new URL(url).port;
      const env = { ...scratch, THREADS, PORT: portOf(first.gatewayUrl), AUTH_PORT: portOf(first.authUrl) };
      const { code, stderr } = await runFrontdesk(['serve', '--demo'], { env });
      assert.equal(code, 1);
      for (const name of ['PORT', 'AUTH_PORT'])
        assert.match(
          stderr,
          new RegExp(`cannot listen on 127\\.0\\.0\\.1:${env[name as 'PORT']} .* with ${name} `, 'm'),
        );
      assert.equal(stderr.match(/cannot listen/g)?.length, 2);
    });

  it('prints curl commands that work, logs requests without secrets, and stops on SIGTERM to npm start', async () => {
    const server = await startByNpm({ env: { DRAIN_MS: '3000', ADMIN_PORT: '0' } });
    servers.later(server.stop);
    const expectReady = (status: number) => request(server.adminUrl).get('/gateway/v0/check_ready').expect(status);
    await expectReady(200);
    const shown = server.stdout().match(/(?<=^ {2}curl -i ).*/gm) ?? [];
    assert.equal(shown.length, 3);
    for (const line of shown) assert.equal((await fetchAsCurl(line)).status, 200, line);

    const response = await request(server.gatewayUrl).get(`${path}?fields=id`).auth('demo', 'demo').expect(200);
    server.signal('SIGTERM');
    await server.waitForOutput(/^SIGTERM: waiting for requests in flight/m);
    // It keeps serving for DRAIN_MS.
    await expectReady(503);
    await request(server.gatewayUrl).get(path).auth('demo', 'demo').expect(200);
    const { code, stdout } = await server.ended;
    assert.equal(code, 0);
    // On a busy machine the limiter may time out, which is logged as well.
    const lines = stdout.split('\n').filter((line) => line.includes('"msg":"request"'));
    assert.equal(lines.length, 5);
    const { level, time, durationMs, traceId, bytesIn, bytesOut, ...line } = JSON.parse(lines[3] ?? '');
    const requestId = response.headers['x-request-id'];
    assert.deepEqual(line, {
      requestId,
      user: 'demo',
      mapping: 'hotel',
      method: 'GET',
      path,
      status: 200,
      msg: 'request',
      client: '127.0.0.1',
      protocol: 'HTTP/1.1',
    });
    assert.ok(level === 30 && time > 0 && durationMs > 0 && bytesIn > 0 && bytesOut > 0);
    assert.match(traceId, /^[\da-f]{32}$/);
    assert.ok(!stdout.includes(btoa('demo:demo')) && !stdout.includes('fields'));
  });

  for (const [address, shown] of [
    [{ host: '127.0.0.1', port: 80, url: 'http://127.0.0.1:80' }, 'http://127.0.0.1:80'],
    [{ host: '::1', port: 80, url: 'https://[::1]:80' }, 'https://[::1]:80'],
    [{ host: '0.0.0.0', port: 80, url: 'https://127.0.0.1:80' }, 'https://127.0.0.1:80 (listens on 0.0.0.0:80)'],
    [{ host: '::', port: 80, url: 'grpc://[::1]:80' }, 'grpc://[::1]:80 (listens on [::]:80)'],
  ] as const)
    it(`shows a URL that works here and the address that it listens on: ${shown}`, () =>
      assert.ok(formatAddresses({ 'rate limits': address, auth: undefined }).endsWith(`\n  rate limits  ${shown}\n`)));

  for (const THREADS of ['1', '2'])
    it(`shows the address of each port, also with HTTPS and on all addresses, with THREADS=${THREADS}`, async function () {
      const directory = await writeFiles();
      const { file } = (await makeCertificate(directory, 'IP:127.0.0.1')) ?? this.skip();
      const tls = { TLS_CERT: file, TLS_KEY: join(directory, 'key.pem') };
      const env = { HOST: '0.0.0.0', AUTH_HOST: '127.0.0.1', ADMIN_PORT: '0', ...tls };
      const DATABASE_URL = `sqlite:${join(directory, 'frontdesk.db')}`;
      const server = await start(['--demo'], { ...env, DATABASE_URL, THREADS, ALLOW_DEMO_USERS: 'true' });
      const [, gateway, ratelimit, http, auth, admin] = server.stdout().match(/^(?:frontdesk| {2}).*$/gm) ?? [];
      const everywhere = (name: string, scheme: string) =>
        new RegExp(`^  ${name} +${scheme}://127\\.0\\.0\\.1:(\\d+) \\(listens on 0\\.0\\.0\\.0:\\1\\)$`);
      assert.match(gateway ?? '', everywhere('gateway', 'https'));
      assert.match(ratelimit ?? '', everywhere('rate limits', 'grpc'));
      assert.match(http ?? '', everywhere('rate limits \\(HTTP\\)', 'http'));
      assert.match(auth ?? '', /^ {2}auth +http:\/\/127\.0\.0\.1:\d+$/);
      assert.match(admin ?? '', everywhere('admin', 'http'));
    });

  it('runs the demo of the package with --demo in a directory without a configuration, and so does split', async () => {
    const cwd = await writeFiles({ 'config/other.json': '{}' });
    for (const starts of [startServer, startSplit]) {
      const server = await starts(['--demo'], { cwd });
      servers.later(server.stop);
      await request(server.gatewayUrl).get(path).auth('demo', 'demo').expect(200);
      assert.match(server.stdout(), /^ {2}curl -i -u demo:demo /m);
    }
  });

  it('says with --demo where the demo is if no record of the configuration leads to it, or if it has no data', async () => {
    const own = { 'config/services/app.yaml': mapping('app', 'service: http://127.0.0.1:9') };
    const hotels = { 'config/services/app.yaml': mapping('hotels', 'service: hotel') };
    const where = `to see the demo, set CONFIG_DIR=${join(root, 'config')}`;
    for (const [files, expected] of [
      [own, 'no Mapping leads to a service of the demo'],
      [hotels, 'there is no demo.yaml'],
    ] as const) {
      const server = await startServer(['--demo'], { cwd: await writeFiles(files) });
      const { stdout } = await server.stop();
      const warning = stdout.split('\n').find((line) => line.includes(expected)) ?? assert.fail(stdout);
      assert.ok(JSON.parse(warning).msg.includes(where), warning);
    }
  });

  const mapping = (name: string, more: string) =>
    `apiVersion: gateway/v1\nkind: Mapping\nname: ${name}\nprefix: /${name}\n${more}\n`;

  /** Starts a gateway: the test responds to `/slow` itself, and the service of `/taken` reads and discards bodies. */
  async function startSlow(env: RunOptions['env'] = {}) {
    const arrivals = new EventEmitter();
    const upstream = await servers.http((_request, response) => void arrivals.emit('request', response));
    const taker = await servers.http((req, res) => req.resume().once('end', () => res.end()));
    const slow = mapping('slow', `service: ${upstream.origin}\ntimeout_ms: 20000`);
    const taken = mapping('taken', `service: ${taker.origin}`);
    const CONFIG_DIR = join(await writeFiles(), 'config');

    /** Replaces the whole directory, which a file watcher does not notice. */
    async function configure(host: string): Promise<void> {
      const moved = mapping('moved', `host_redirect: true\nservice: ${host}`);
      await symlink(await writeFiles({ 'services/all.yaml': [slow, taken, moved].join('---\n') }), `${CONFIG_DIR}.new`);
      await rename(`${CONFIG_DIR}.new`, CONFIG_DIR);
    }

    await configure('old');
    const server = await start(['--only', 'gateway'], { CONFIG_DIR, ...env });
    return { server, configure, ask: () => askSlow(server, arrivals) };
  }

  /** Sends a request, and resolves when it has reached the service, with the response for the test to complete. */
  async function askSlow({ gatewayUrl }: Server, arrivals: EventEmitter) {
    const arrival = once(arrivals, 'request');
    const fetched = fetch(`${gatewayUrl}/slow`);
    fetched.catch(() => {});
    const [response] = (await arrival) as [ServerResponse];
    return { fetched, response };
  }

  it('reloads on SIGHUP; on SIGINT finishes requests in flight, accepts no new ones and exits with 0', async () => {
    const { server, configure, ask } = await startSlow();
    const expectHost = (host: string) =>
      request(server.gatewayUrl).get('/moved').expect('Location', `http://${host}/moved`);
    await expectHost('old');
    await configure('new');
    server.signal('SIGHUP');
    await server.waitForOutput(/configuration reloaded/);
    await expectHost('new');

    const { fetched, response } = await ask();
    server.signal('SIGINT');
    await server.waitForOutput(/SIGINT: waiting for requests in flight/);
    await eventually(() => assert.rejects(request(server.gatewayUrl).get('/gateway/v0/check_alive')));
    response.end('done');
    assert.equal(await (await fetched).text(), 'done');
    const { code, stderr } = await server.ended;
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
  });

  it('continues starting on SIGHUP', async () => {
    // The start waits for a database that does not respond, until the test closes the connection.
    const database = createServer();
    const { port } = await servers.listen(database);
    const env = { ...scratch, DATABASE_URL: `postgres://demo@127.0.0.1:${port}/demo`, PATH: process.env['PATH'] };
    const child = spawn(process.execPath, [built('main.js'), 'serve', '--only', 'hotel'], { env, stdio: 'ignore' });
    servers.later(async () => void child.kill('SIGKILL'));
    const ended = once(child, 'exit');
    const [connection] = (await once(database, 'connection')) as [Socket];
    database.close();
    child.kill('SIGHUP');
    connection.destroy();
    assert.deepEqual(await ended, [1, null]);
  });

  /** Makes the process receive the signal while its modules are loading. */
  function signalledEarly(signal: NodeJS.Signals) {
    const hook = `(url, context, next) => {
      if (url.includes('/dist/programs/program-')) process.kill(process.pid, '${signal}');
      return next(url, context);
    }`;
    const code = encodeURIComponent(`import { registerHooks } from 'node:module'; registerHooks({ load: ${hook} });`);
    return { NODE_OPTIONS: `--import=data:text/javascript,${code}` };
  }

  it('exits with 0 on SIGTERM while its modules are loading, and so does `split`', async () => {
    const env = signalledEarly('SIGTERM');
    for (const command of ['serve', 'split'])
      assert.deepEqual(await runFrontdesk([command], { env }), { code: 0, stdout: '', stderr: '' });
  });

  it('continues starting on SIGHUP while its modules are loading, like `split` and unlike other commands', async () => {
    const env = signalledEarly('SIGHUP');
    for (const starts of [startServer, startSplit]) assert.equal((await (await starts([], { env })).stop()).code, 0);
    assert.equal((await runFrontdesk(['check'], { env })).code, null);
  });

  it('opens no debugger on SIGUSR1 and continues on SIGUSR2, while it starts and afterwards, like `split`', async () => {
    for (const signal of ['SIGUSR1', 'SIGUSR2'] as const) {
      const env = signalledEarly(signal);
      for (const starts of [startServer, startSplit]) {
        const server = await starts([], { env });
        server.signal(signal);
        await request(server.gatewayUrl).get('/nowhere').expect(404);
        const { code, stderr } = await server.stop();
        assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
      }
    }
  });

  it('collects the buffers of a large body early, and on a second signal exits immediately with 1', async () => {
    const { server, ask } = await startSlow({ ADMIN_PORT: '0', LOG_LEVEL: 'error' });
    assert.deepEqual([server.authUrl, server.ratelimitUrl], ['', '']);
    const external = await externalDuring(server, 80);
    // Node 26 does not have the V8 flag for this.
    if (process.versions.node.startsWith('24.'))
      assert.ok(Math.max(...external) < 40e6, `${external.map((bytes) => Math.round(bytes / 1e6))} MB`);

    const { fetched } = await ask();
    server.signal('SIGTERM');
    await server.waitForOutput(/SIGTERM: waiting for requests in flight/);
    server.signal('SIGINT');
    const { code, stdout } = await server.ended;
    assert.equal(code, 1);
    assert.doesNotMatch(stdout, /SIGINT: waiting|^\{/m);
    await assert.rejects(fetched);
  });

  it('stops on SIGTERM although the reader of its output is stalled', async () => {
    const { server } = await startSlow();
    server.pauseReading();
    // More than the buffers of the pipe and of its reader can hold.
    const path = 'x'.repeat(4000);
    await Promise.all(Array.from({ length: 60 }, () => fetch(`${server.gatewayUrl}/${path}`)));
    assert.equal((await server.stop()).code, 0);
  });

  it('keeps serving when the disk of its output is full, and reports it once', async function () {
    if (!existsSync('/dev/full')) return this.skip();
    const output = openSync('/dev/full', 'w');
    const child = spawn(process.execPath, [built('main.js'), 'serve'], {
      env: { PATH: process.env['PATH'], ...scratch },
      stdio: ['ignore', output, 'pipe'],
    });
    servers.later(async () => void child.kill('SIGKILL'));
    closeSync(output);
    let said = '';
    child.stderr?.on('data', (text) => {
      said += text;
    });
    // It fails to print that it is ready.
    await eventually(() => assert.match(said, /cannot write/));
    child.kill('SIGHUP');
    child.kill('SIGTERM');
    assert.deepEqual(await once(child, 'close'), [0, null]);
    assert.match(said, /^frontdesk: cannot write to standard output: ENOSPC[^\n]*\n$/);
  });

  it('keeps serving when its output is closed, and stops within SHUTDOWN_TIMEOUT_MS', async () => {
    const { server, ask } = await startSlow({ SHUTDOWN_TIMEOUT_MS: '50' });
    server.stopReading();
    await request(server.gatewayUrl).get('/moved').expect(301);
    const { fetched } = await ask();
    const { code, stderr } = await server.stop();
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    await assert.rejects(fetched);
  });
});

/** Samples the bytes outside V8's heap after every 16 MiB while the gateway forwards a body of that many MiB. */
async function externalDuring({ gatewayUrl, adminUrl }: Server, mebibytes: number): Promise<readonly number[]> {
  const external: number[] = [];
  async function* pieces() {
    for (let sent = 1; sent <= mebibytes; sent += 1) {
      yield Buffer.alloc(1024 * 1024);
      if (sent % 16 !== 0) continue;
      const { text } = await request(adminUrl).get('/metrics').expect(200);
      external.push(seriesOf(text)['nodejs_external_memory_bytes'] ?? Number.NaN);
    }
  }
  const response = await fetch(`${gatewayUrl}/taken`, { method: 'POST', body: pieces(), duplex: 'half' });
  assert.equal(response.status, 200);
  return external;
}

/** Sends the request of a curl command that has a URL and optionally `-u user:password` and `-H 'Name: value'`. */
function fetchAsCurl(line: string): Promise<Response> {
  const [, user, name, value = '', url = ''] = /^(?:-u (\S+) )?(?:-H '(.*): (.*)' )?(\S+)$/.exec(line) ?? [];
  const headers = new Headers();
  if (user !== undefined) headers.set('authorization', `Basic ${btoa(user)}`);
  if (name !== undefined) headers.set(name, value);
  return fetch(url, { headers });
}
