/** `frontdesk serve` as a user meets it: what it prints, what it logs, and what each signal does. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { readFile, rename, symlink } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { get } from 'node:https';
import { join } from 'node:path';
import { promisify } from 'node:util';
import request from 'supertest';
import { type RunOptions, type Server, startServer } from '../support/programs/frontdesk-process.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';

const booking = '0b6f1c52-7d7e-4a57-9d43-5f0f6c1d2a01';

describe('frontdesk serve', function () {
  this.timeout(20_000);
  const writeFiles = temporaryFiles();
  const servers = testServers();
  const running: Server[] = [];

  const start = async (args: readonly string[] = [], env: RunOptions['env'] = {}) => {
    const server = await startServer(args, { env });
    running.push(server);
    return server;
  };

  afterEach(async () => {
    for (const server of running.splice(0)) await server.stop();
  });

  it('prints where it listens, the demo users, and three curl lines that work', async () => {
    const server = await start();
    const lines = server.stdout().match(/(?<=^ {2}curl -i ).*/gm) ?? [];
    assert.equal(lines.length, 3);
    for (const line of lines) {
      const [, user, header, url = ''] = /^(?:-u (\S+) )?(?:-H '([^']*)' )?(\S+)$/.exec(line) ?? [];
      const headers = new Headers(user === undefined ? {} : { authorization: `Basic ${btoa(user)}` });
      const [name = '', value = ''] = header?.split(': ') ?? [];
      if (name !== '') headers.set(name, value);
      assert.equal((await fetch(url, { headers })).status, 200, line);
    }
  });

  it('runs the modules that --only names, at their own root', async () => {
    const server = await start(['--only', 'hotel']);
    assert.deepEqual([server.authUrl, server.ratelimitUrl], ['', '']);
    await request(server.gatewayUrl).get(`/bookings/${booking}`).set('X-Travel-User', 'demo').expect(200);
    await request(server.gatewayUrl).get('/gateway/v0/check_ready').expect(200);
  });

  it('prints where the admin port is, which any module may have, and which writes no line a request', async () => {
    const server = await start(['--only', 'auth'], { ADMIN_PORT: '0' });
    const { text } = await request(server.adminUrl).get('/metrics').expect(200);
    assert.match(text, /^frontdesk_configuration_generation 1$/m);
    assert.doesNotMatch((await server.stop()).stdout, /^\{/m);
  });

  it('writes one line a request, without secrets, and the last ones before it ends', async () => {
    const server = await start();
    const path = `/v1/hotels/bookings/${booking}`;
    const answer = await request(server.gatewayUrl).get(`${path}?fields=id`).auth('demo', 'demo').expect(200);
    const { code, stdout, stderr } = await server.stop();
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    // A machine with much to do may make the limiter late, and that is told as well.
    const lines = stdout.split('\n').filter((line) => line.includes('"msg":"request"'));
    assert.equal(lines.length, 1);
    const { level, time, durationMs, traceId, ...line } = JSON.parse(lines[0] ?? '');
    assert.deepEqual(line, {
      requestId: answer.headers['x-request-id'],
      user: 'demo',
      mapping: 'hotel',
      method: 'GET',
      path,
      status: 200,
      msg: 'request',
    });
    assert.ok(level === 30 && time > 0 && durationMs > 0);
    assert.match(traceId, /^[\da-f]{32}$/);
    assert.ok(!stdout.includes(btoa('demo:demo')) && !stdout.includes('fields'));
  });

  it('writes no access log at LOG_LEVEL=error', async () => {
    const server = await start(['--only', 'api'], { LOG_LEVEL: 'error' });
    await request(server.gatewayUrl).get('/v1/messages/1').expect(200);
    const { stdout } = await server.stop();
    assert.doesNotMatch(stdout, /^\{/m);
  });

  /** A server whose `/slow` waits for what is behind it, with a request that has got there. */
  async function startWithSlowRequest(env: RunOptions['env'] = {}) {
    const arrivals = new EventEmitter();
    const upstream = await servers.http((_request, response) => void arrivals.emit('request', response));
    const CONFIG_DIR = await writeFiles({
      'services/slow.yaml': `apiVersion: gateway/v1\nkind: Mapping\nname: slow\nprefix: /slow\nservice: ${upstream.origin}\ntimeout_ms: 20000\n`,
    });
    const server = await start(['--only', 'gateway'], { CONFIG_DIR, ...env });
    const arrival = once(arrivals, 'request');
    const answered = fetch(`${server.gatewayUrl}/slow`);
    answered.catch(() => {});
    const [response] = (await arrival) as [ServerResponse];
    return { server, answered, response };
  }

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    it(`finishes what runs on ${signal}, takes nothing new, and ends with 0`, async () => {
      const { server, answered, response } = await startWithSlowRequest();
      server.signal(signal);
      await server.said(new RegExp(`${signal}: requests in flight finish`));
      await assert.rejects(fetch(`${server.gatewayUrl}/gateway/v0/check_alive`));
      response.end('done');
      assert.equal(await (await answered).text(), 'done');
      const { code, stderr } = await server.ended;
      assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    });
  }

  it('stops at once on the second signal, whichever it is, and ends with 1', async () => {
    const { server, answered } = await startWithSlowRequest();
    server.signal('SIGTERM');
    await server.said(/SIGTERM: requests in flight finish/);
    server.signal('SIGINT');
    const { code, stdout } = await server.ended;
    assert.equal(code, 1);
    assert.doesNotMatch(stdout, /SIGINT: requests/);
    await assert.rejects(answered);
  });

  it('re-reads the configuration on SIGHUP, also where a change went unnoticed, and goes on', async () => {
    const mapping = (name: string) =>
      `apiVersion: gateway/v1\nkind: Mapping\nname: ${name}\nprefix: /\nhost_redirect: true\nservice: ${name}\n`;
    const directories = [
      await writeFiles({ 'services/a.yaml': mapping('old') }),
      await writeFiles({ 'services/a.yaml': mapping('new') }),
    ];
    const CONFIG_DIR = join(await writeFiles(), 'config');
    const link = async (to = '') => {
      await symlink(to, `${CONFIG_DIR}.new`);
      await rename(`${CONFIG_DIR}.new`, CONFIG_DIR);
    };
    await link(directories[0]);
    const server = await start(['--only', 'gateway'], { CONFIG_DIR });
    const ask = () => request(server.gatewayUrl).get('/x');
    await ask().expect('Location', 'http://old/x');
    await link(directories[1]);
    server.signal('SIGHUP');
    await server.said(/configuration reloaded/);
    await ask().expect('Location', 'http://new/x');
    assert.equal((await server.stop()).code, 0);
  });

  it('waits no longer than SHUTDOWN_TIMEOUT_MS for what does not end', async () => {
    const { server, answered } = await startWithSlowRequest({ SHUTDOWN_TIMEOUT_MS: '50' });
    const { code } = await server.stop();
    assert.equal(code, 0);
    await assert.rejects(answered);
  });

  it('serves on and ends with 0 when nobody reads its output any more', async () => {
    const server = await start(['--only', 'api']);
    server.stopReading();
    await request(server.gatewayUrl).get('/v1/messages/1').expect(200);
    const { code, stderr } = await server.stop();
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
  });

  it('speaks HTTPS with TLS_CERT and TLS_KEY, and says so in every URL', async function () {
    const directory = await writeFiles();
    const [cert, key] = [join(directory, 'cert.pem'), join(directory, 'key.pem')];
    if (!(await makeCertificate(cert, key))) this.skip();
    const server = await start(['--only', 'api'], { TLS_CERT: cert, TLS_KEY: key });
    assert.match(server.gatewayUrl, /^https:/);
    const asked = get(`${server.gatewayUrl}/v1/messages/1`, { ca: await readFile(cert), agent: false });
    const [answer]: IncomingMessage[] = await once(asked, 'response');
    let text = '';
    for await (const chunk of answer ?? []) text += chunk;
    assert.equal(JSON.parse(text).url, `${server.gatewayUrl}/v1/messages/1`);
  });
});

/** False where there is no openssl. */
async function makeCertificate(cert: string, key: string): Promise<boolean> {
  const kind = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  const name = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1'];
  try {
    await promisify(execFile)('openssl', ['req', ...kind, ...name, '-keyout', key, '-out', cert]);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return false;
    throw error;
  }
}
