/** `frontdesk split`: starts and stops a process for each module. See conformance/split for their responses. */
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { rename, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import request from 'supertest';
import { runFrontdesk, scratch, startSplit } from '../support/programs/frontdesk-process.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { rawRequest, sendRaw } from '../support/wire/raw-client.ts';

const mapping = (prefix: string, service = 'hotel') =>
  `apiVersion: gateway/v1\nkind: Mapping\nname: rooms\nprefix: ${prefix}\nservice: ${service}\nbypass_auth: true\n`;
const auth = '---\napiVersion: gateway/v1\nkind: AuthService\nname: auth\nauth_service: auth\n';
const limits = '---\napiVersion: gateway/v1\nkind: RateLimitService\nname: limits\nservice: ratelimit\n';

describe('frontdesk split', () => {
  const servers = testServers();
  const writeFiles = temporaryFiles();

  it('starts the modules that records use, reloads on SIGHUP, and leaves no process behind when killed', async () => {
    const CONFIG_DIR = join(await writeFiles(), 'config');
    const { origin } = await servers.http((_req, res) => void res.end());
    /** Replaces the whole directory, which a file watcher does not notice. */
    const configure = async (prefix: string, more = '') => {
      const records = mapping(prefix, origin) + auth + more;
      await symlink(await writeFiles({ 'services/rooms.yaml': records }), `${CONFIG_DIR}.new`);
      await rename(`${CONFIG_DIR}.new`, CONFIG_DIR);
    };
    await configure('/v1/hotels');
    const server = await startSplit([], { env: { CONFIG_DIR } });
    assert.deepEqual(server.stdout().match(/^ {2}\w+(?= +http)/gm), ['  gateway', '  auth']);

    await configure('/v1/rooms');
    server.signal('SIGHUP');
    for (const module of ['gateway', 'auth'])
      await server.waitForOutput(new RegExp(`"module":"${module}".*"configuration reloaded"`));
    await request(server.gatewayUrl).get('/v1/rooms').expect(200);

    await configure('/v1/more', limits);
    server.signal('SIGHUP');
    await server.waitForOutput(/"module":"gateway".*RateLimitService limits: \\"ratelimit\\" does not run, .*Restart/);
    await request(server.gatewayUrl).get('/v1/more').expect(404);
    await request(server.gatewayUrl).get('/v1/rooms').expect(200);

    server.signal('SIGKILL');
    // Resolves when the last process has closed its output.
    await server.ended;
    await assert.rejects(fetch(server.gatewayUrl));
  });

  it('exits immediately with 1 on the second signal, because its modules could not finish', async () => {
    const CONFIG_DIR = await writeFiles({ 'services/rooms.yaml': mapping('/v1/rooms', 'http://127.0.0.1:9') });
    const server = await startSplit([], { env: { CONFIG_DIR, DRAIN_MS: '50000' } });
    server.signal('SIGTERM');
    await server.waitForOutput(/second signal stops immediately/);
    server.signal('SIGTERM');
    assert.equal((await server.ended).code, 1);
  });

  it('exits with 0 when the first signal arrives while its modules are starting', async () => {
    const CONFIG_DIR = await writeFiles({ 'services/rooms.yaml': mapping('/v1/rooms') + auth });
    const script = `process.argv.includes('auth') && process.kill(process.ppid, 'SIGTERM')`;
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(script)}`;
    const env = { ...scratch, CONFIG_DIR, NODE_OPTIONS };
    const { code, stdout, stderr } = await runFrontdesk(['split'], { env });
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    // A module that has almost started may log a notice.
    assert.match(stdout, /^\nSIGTERM: .*\n(?:\{.*\}\n)*$/);
  });

  it('stops the gateway and then its services within SHUTDOWN_TIMEOUT_MS together, and exits with 0', async () => {
    const arrivals = new EventEmitter();
    const stuck = await servers.http(() => void arrivals.emit('request'));
    const limiting = '---\napiVersion: gateway/v1\nkind: RateLimitService\nname: ratelimit\nservice: ratelimit\n';
    const CONFIG_DIR = await writeFiles({ 'services/rooms.yaml': mapping('/v1/rooms', stuck.origin) + limiting });
    const server = await startSplit([], { env: { CONFIG_DIR, SHUTDOWN_TIMEOUT_MS: '2500' } });
    const arrived = once(arrivals, 'request');
    const cutOff = [
      assert.rejects(fetch(`${server.gatewayUrl}/v1/rooms`)),
      sendRaw(
        Number(new URL(server.ratelimitHttpUrl).port),
        rawRequest('POST /json', ['Content-Type: application/json', 'Content-Length: 9']),
      ),
    ];
    await arrived;
    const startedAtMs = performance.now();
    assert.equal((await server.stop()).code, 0);
    const tookMs = performance.now() - startedAtMs;
    assert.ok(tookMs > 2400 && tookMs < 4900, `${tookMs} ms`);
    await Promise.all(cutOff);
  });

  it('lets its processes finish if SHUTDOWN_TIMEOUT_MS is the longest delay that a timer allows', async () => {
    const CONFIG_DIR = await writeFiles({ 'services/rooms.yaml': mapping('/v1/rooms', 'http://127.0.0.1:9') + auth });
    const server = await startSplit([], { env: { CONFIG_DIR, SHUTDOWN_TIMEOUT_MS: '2147483647' } });
    const { code, stderr } = await server.stop();
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
  });

  it('stops although the reader of its output is stalled', async () => {
    const CONFIG_DIR = await writeFiles({ 'services/rooms.yaml': mapping('/v1/rooms', 'http://127.0.0.1:9') });
    const server = await startSplit([], { env: { CONFIG_DIR } });
    server.pauseReading();
    // More than the buffers of the pipe and of its reader can hold.
    const path = 'x'.repeat(4000);
    await Promise.all(Array.from({ length: 200 }, () => fetch(`${server.gatewayUrl}/${path}`)));
    assert.equal((await server.stop()).code, 0);
  });

  it('kills a process that hangs, so that the others can exit, and exits with 1', async () => {
    const CONFIG_DIR = await writeFiles({ 'services/rooms.yaml': mapping('/v1/rooms') + auth });
    const sleep = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20_000)';
    const hangAtStop = `['SIGTERM', 'message'].forEach((name) => process.on(name, () => ${sleep}))`;
    const hang = async (module: string) => {
      const script = `process.argv.includes('${module}') && ${hangAtStop}`;
      const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(script)}`;
      const server = await startSplit([], { env: { CONFIG_DIR, NODE_OPTIONS, SHUTDOWN_TIMEOUT_MS: '100' } });
      const { code, stderr } = await server.stop();
      assert.match(stderr, new RegExp(`^frontdesk: the ${module} process did not stop in time, killing it\n$`));
      assert.equal(code, 1);
    };
    await Promise.all([hang('gateway'), hang('auth')]);
  });

  it('reports the signal that killed a module, stops the others, and exits with 1', async () => {
    const CONFIG_DIR = await writeFiles({ 'services/rooms.yaml': mapping('/v1/rooms') + auth });
    const script = `process.argv.includes('auth') && process.kill(process.pid, 'SIGKILL')`;
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(script)}`;
    const { code, stderr } = await runFrontdesk(['split'], { env: { ...scratch, CONFIG_DIR, NODE_OPTIONS } });
    const expected = 'frontdesk: the auth process was killed by SIGKILL, stopping the others\n';
    assert.deepEqual({ code, stderr }, { code: 1, stderr: expected });
  });

  it('leaves no process and no stack trace behind when it is killed while its modules are starting', async () => {
    const CONFIG_DIR = await writeFiles({ 'services/rooms.yaml': mapping('/v1/rooms') + auth });
    const script = `process.argv.includes('auth') && process.kill(process.ppid, 'SIGKILL')`;
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(script)}`;
    // Resolves when the last process has closed its output.
    const { stderr } = await runFrontdesk(['split'], { env: { ...scratch, CONFIG_DIR, NODE_OPTIONS } });
    assert.equal(stderr, '');
  });

  it('reports why a module cannot start, stops the others, and exits with 1', async () => {
    const { port } = await servers.tcp(() => {});
    const CONFIG_DIR = await writeFiles({ 'services/rooms.yaml': mapping('/v1/rooms') + auth });
    const starting = startSplit([], { env: { CONFIG_DIR, AUTH_PORT: String(port) } });
    await assert.rejects(
      starting,
      /ended with 1 .*EADDRINUSE.*AUTH_PORT.*the auth process has exited with code 1, stopping the others/s,
    );
  });
});
