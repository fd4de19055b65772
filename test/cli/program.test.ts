/** The command line as a user meets it: in a process of its own, by what it prints and how it ends. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { get } from 'node:https';
import { join } from 'node:path';
import { promisify } from 'node:util';
import request from 'supertest';
import { parsePasswordHash, verifyPassword } from '#auth';
import { packageVersion } from '#config';
import {
  type Ended,
  type RunOptions,
  runsTogether,
  type Server,
  scratch,
  startServer,
} from '../support/programs/frontdesk-process.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';

const booking = '0b6f1c52-7d7e-4a57-9d43-5f0f6c1d2a01';

/** The key in the fourth line has lost a letter. */
const brokenRecord = 'apiVersion: gateway/v1\nkind: Mapping\nname: rooms\nprefx: /v1/rooms\nservice: hotel\n';

const stackTrace = /^\s+at |node:internal|^\w*Error:/m;

describe('frontdesk', () => {
  const run = runsTogether();
  const writeFiles = temporaryFiles();
  const servers = testServers();

  function check(
    name: string,
    args: readonly string[],
    expected: (ended: Ended) => unknown,
    options?: () => Promise<RunOptions>,
  ): void {
    const ended = run(args, options);
    it(name, async () => void (await expected(ended())));
  }

  check('--version prints the version of the package', ['--version'], ({ code, stdout }) => {
    assert.deepEqual({ code, stdout }, { code: 0, stdout: `${packageVersion()}\n` });
  });

  check('--help lists the commands and every setting with its default', ['--help'], ({ code, stdout }) => {
    assert.equal(code, 0);
    for (const word of ['serve', 'init', 'check', 'hash-password', 'CONFIG_DIR', 'TLS_CERT'])
      assert.ok(stdout.includes(word));
    assert.match(stdout, /^ {2}RATELIMIT_PORT +.*\[8081\]$/m);
  });

  check('refuses an unknown command and shows the usage', ['srve'], ({ code, stderr }) => {
    assert.equal(code, 1);
    assert.match(stderr, /^error: [^\n]*\n\nUsage: frontdesk/);
  });

  describe('check', () => {
    check(
      'lists the routes of ./config in the order in which they are tried',
      ['check'],
      ({ code, stdout, stderr }) => {
        assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
        assert.deepEqual(stdout.split('\n'), [
          '/v1/hotels  ->  hotel  (Mapping hotel, config/services/hotel.yaml:9)',
          '/v1/cars    ->  car  (Mapping car, config/services/car.yaml:8)',
          '',
        ]);
      },
    );

    check(
      'prints file, line, record and remedy of everything that is broken, and ends with 1',
      ['check'],
      ({ code, stdout, stderr }) => {
        assert.deepEqual({ code, stdout }, { code: 1, stdout: '' });
        assert.match(stderr, /^services\/rooms\.yaml:4 {2}Mapping rooms: .*prefx.*\n {4}.*prefix/m);
        assert.match(stderr, /^users\.yaml:1 /m);
        assert.doesNotMatch(stderr, stackTrace);
      },
      async () => ({
        cwd: await writeFiles({ 'services/rooms.yaml': brokenRecord, 'users.yaml': 'users: none\n' }),
        env: { CONFIG_DIR: '.' },
      }),
    );
  });

  describe('hash-password', () => {
    check(
      'turns a line of standard input into a hash that this password matches, and no other',
      ['hash-password'],
      async ({ code, stdout, stderr }) => {
        assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
        const hash = parsePasswordHash(stdout.trim());
        assert.ok(hash !== undefined, stdout);
        assert.equal(await verifyPassword('pass wörd ', hash), true);
        assert.equal(await verifyPassword('pass wörd', hash), false);
      },
      async () => ({ input: 'pass wörd \nsecond line' }),
    );

    for (const input of ['', '\n']) {
      check(
        `makes no hash of nothing: ${JSON.stringify(input)}`,
        ['hash-password'],
        ({ code, stdout, stderr }) => {
          assert.deepEqual({ code, stdout }, { code: 1, stdout: '' });
          assert.equal(stderr, 'frontdesk: there was no password on standard input\n');
        },
        async () => ({ input }),
      );
    }
  });

  describe('serve, when it cannot', () => {
    const takenPort = async () => ({ PORT: String((await servers.tcp(() => {})).port) });
    const unusableDatabase = async () => ({ DATABASE_URL: `sqlite:${await writeFiles()}` });
    const brokenAuth = 'apiVersion: gateway/v1\nkind: AuthService\nname: auth\nauth_servce: auth\n';
    const brokenConfiguration = async () => ({ CONFIG_DIR: await writeFiles({ 'services/auth.yaml': brokenAuth }) });

    /** What is wrong, the settings for it, and what must be said: the thing and the remedy. */
    const failures: readonly (readonly [string, () => Promise<NonNullable<RunOptions['env']>>, RegExp])[] = [
      ['the port is taken', takenPort, /127\.0\.0\.1:\d+ .*another process.*\bPORT\b/],
      ['a setting is bad', async () => ({ PORT: 'eighty' }), /PORT="eighty": expected a whole number from 0 to 65535/],
      ['a setting is misspelt', async () => ({ CONFG_DIR: 'x' }), /CONFG_DIR is not a setting.*CONFIG_DIR/],
      ['the database cannot be written', unusableDatabase, /database file .*DATABASE_URL/],
      [
        'nobody can be asked who a client is',
        brokenConfiguration,
        /auth\.yaml:4 {2}AuthService auth: .*\n {4}.*auth_service/,
      ],
      ['demo users would face the network', async () => ({ HOST: '0.0.0.0' }), /demo and guest.*ALLOW_DEMO_USERS=true/],
    ];

    for (const [what, settings, message] of failures) {
      check(
        `says so in one clear message and ends with 1: ${what}`,
        ['serve'],
        ({ code, stdout, stderr }) => {
          assert.match(stderr, /^frontdesk: .*\n$/s);
          assert.match(stderr, message);
          assert.doesNotMatch(stderr, stackTrace);
          assert.deepEqual({ code, stdout }, { code: 1, stdout: '' });
        },
        async () => ({ env: { ...scratch, ...(await settings()) } }),
      );
    }

    check('says so when a module is unknown, and names those there are', ['serve', '--only', 'hotel,spa'], (ended) => {
      assert.equal(ended.code, 1);
      assert.match(ended.stderr, /hotel,spa.*gateway, auth, ratelimit, hotel, car, api/);
      assert.doesNotMatch(ended.stderr, stackTrace);
    });
  });
});

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
