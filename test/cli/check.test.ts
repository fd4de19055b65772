/** `frontdesk check`: what it reports of each route, its formats, and its notices about open routes. */
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { authRecord, limitRecord, mappingRecord } from '../support/desks.ts';
import { runCommand } from '../support/programs/command.ts';
import { temporaryFiles, yamlOf } from '../support/temporary-files.ts';

const limits = `domain: gateway
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 600 }
  - key: plan
    value: s3cret
    descriptors:
      - key: user
        rate_limit: { unit: second, unit_multiplier: 30, requests_per_unit: 5, algorithm: token_bucket, burst: 20 }
`;

const user = { user: { header: 'X-Travel-User', omit_if_not_present: true } };
const labels = { gateway: [{ by_user: [user] }, { by_plan: [{ plan: { header: 'X-Plan' } }, user] }] };

const far = 'http://far:9000';
const records = [
  authRecord,
  { ...authRecord, name: 'tokens', auth_service: 'http://tokens:9000', default: false },
  limitRecord,
  mappingRecord('app', '/', far, { labels }),
  mappingRecord('chat', '/chat', 'http://chat:9000', {
    auth_service: 'tokens',
    allow_upgrade: ['websocket'],
    cors: { origins: ['https://app.example'], credentials: true },
    timeout_ms: 0,
    idle_timeout_ms: 9000,
    add_request_headers: { 'X-Key': 's3cret' },
    retry_policy: { retry_on: '5xx' },
  }),
  mappingRecord('public', '/public', 'http://pages:9000', { bypass_auth: true, rewrite: '/pages/' }),
  mappingRecord('docs', '/docs', 'http://pages:9000', { bypass_auth: true, rewrite: '' }),
  mappingRecord('old', '/old', 'old', { path_redirect: '/', redirect_response_code: 308 }),
];

const threads = { THREADS: '1' };

describe('frontdesk check', () => {
  const writeFiles = temporaryFiles();

  const filesOf = (...some: readonly object[]) =>
    writeFiles({
      'config/services/all.yaml': yamlOf(...some),
      'config/ratelimit/gateway.yaml': limits,
      'config/users.yaml': 'users: []\n',
    });

  async function check(some: readonly object[], args: readonly string[] = [], env: Record<string, string> = {}) {
    const cwd = await filesOf(...some);
    return runCommand(['check', ...args], { cwd, env: { ...threads, ...env } });
  }

  it('lists who may pass each route, its limits, CORS, upgrades and what differs from the defaults', async () => {
    const { code, stdout } = await check(records);
    assert.equal(code, 0);
    assert.deepEqual(stdout.replace(/all\.yaml:\d+/g, 'all.yaml').split('\n'), [
      '/public  ->  http://pages:9000  open         (Mapping public, config/services/all.yaml)',
      '    sets      rewrite: /pages',
      '/chat    ->  http://chat:9000   auth tokens  (Mapping chat, config/services/all.yaml)',
      '    cors      https://app.example, with credentials',
      '    upgrades  websocket',
      '    sets      timeout_ms: 0, idle_timeout_ms: 9000, retry_policy, add_request_headers: x-key',
      '/docs    ->  http://pages:9000  open         (Mapping docs, config/services/all.yaml)',
      '    sets      rewrite: ""',
      '/old     ->  redirect (308)     open         (Mapping old, config/services/all.yaml)',
      '/        ->  http://far:9000    auth auth    (Mapping app, config/services/all.yaml)',
      '    limits    user: 600 per minute; plan=… › user: 5 per 30 seconds, token bucket of 20',
      'time-out 60000 ms, idle time-out 60000 ms, unless a route sets them',
      'serve uses 1 thread: THREADS says so',
      '',
    ]);
  });

  it('prints the same facts as JSON, which --json is short for, without values that may be secrets', async () => {
    const { code, stdout, stderr } = await check(records, ['--json']);
    assert.deepEqual([code, stderr, stdout], [0, '', (await check(records, ['--format', 'json'])).stdout]);
    assert.ok(!stdout.includes('s3cret'));
    const { errors, notices, routes, versions, timeouts, threads } = JSON.parse(stdout);
    assert.deepEqual([errors, versions, timeouts], [[], [], { timeout_ms: 60_000, idle_timeout_ms: 60_000 }]);
    assert.deepEqual(threads, { count: 1, reason: 'THREADS says so' });
    assert.deepEqual(Object.keys(notices[0]), ['file', 'message', 'remedy']);
    const [open, chat, , old, app] = routes;
    assert.deepEqual(
      [open.auth, old.auth],
      [
        { open: true, reason: 'bypass_auth' },
        { open: true, reason: 'redirect' },
      ],
    );
    assert.deepEqual([old.redirect, old.service, app.service], [{ status: 308 }, undefined, far]);
    assert.deepEqual(chat.auth, { open: false, name: 'tokens' });
    assert.deepEqual(
      [chat.cors, chat.upgrades],
      [{ origins: ['https://app.example'], credentials: true }, ['websocket']],
    );
    const { timeout_ms: timeout, retry_policy: retries } = chat.fields;
    assert.deepEqual([timeout, retries], [0, '…']);
    assert.deepEqual(
      app.limits.map(({ descriptor, limit }: { descriptor: string; limit: string }) => [descriptor, limit]),
      [
        ['user', '600 per minute'],
        ['plan=… › user', '5 per 30 seconds, token bucket of 20'],
      ],
    );
  });

  it('lists what is counted if only another process knows the limits', async () => {
    const cwd = await writeFiles({
      'config/services/all.yaml': yamlOf(
        authRecord,
        { ...limitRecord, service: 'grpc://limits' },
        mappingRecord('app', '/', far, { labels }),
      ),
    });
    const { stdout } = await runCommand(['check'], { cwd, env: threads });
    assert.match(stdout, /^ {4}limits {4}user: unknown here; plan › user: unknown here$/m);
  });

  it('lists the addresses from which the settings let clients come to any route', async () => {
    const env = { ALLOW_ADDRESSES: '10.0.0.0/8,192.0.2.1', DENY_ADDRESSES: '10.0.0.9' };
    const { stdout } = await check(records, [], env);
    assert.match(
      stdout,
      /^all routes {2}clients only from 10\.0\.0\.0\/8 or 192\.0\.2\.1, not from 10\.0\.0\.9 {2}\(ALLOW_ADDRESSES and DENY_ADDRESSES\)$/m,
    );
    assert.deepEqual(JSON.parse((await check(records, ['--json'], env)).stdout).addresses, [
      { allow_addresses: ['10.0.0.0/8', '192.0.2.1'], deny_addresses: ['10.0.0.9'] },
    ]);
    assert.doesNotMatch((await check(records)).stdout, /all routes/);
  });

  it('says how many threads serve would use, and why', async () => {
    const lineOf = async (args: readonly string[], env: Record<string, string>) => {
      const { stdout } = await check(records, args, env);
      return stdout.trimEnd().split('\n').at(-1);
    };
    assert.equal(await lineOf([], { THREADS: '3' }), 'serve uses 3 threads: THREADS says so');
    assert.equal(
      await lineOf(['--demo'], { THREADS: '' }),
      'serve uses 1 thread: the demo should be small; THREADS allows more',
    );
    assert.equal(
      await lineOf(['--demo'], { THREADS: '3', DATABASE_URL: 'sqlite::memory:' }),
      'serve uses 1 thread: each would have its own database in memory (DATABASE_URL)',
    );
  });

  it('prints errors as JSON too, and exits with 1', async () => {
    const { code, stdout, stderr } = await check([{ ...mappingRecord('app', '/', far), prefx: 1 }], ['--json']);
    assert.deepEqual([code, stderr], [1, '']);
    const { errors, routes } = JSON.parse(stdout);
    const [{ file, line, record }] = errors;
    assert.deepEqual([file, record, routes], ['config/services/all.yaml', 'Mapping app', undefined]);
    assert.equal(line, 1);
  });

  it('reports settings that cannot be used in each format, with their lines, and errors in records beside them', async () => {
    const cwd = await writeFiles({
      'config/services/all.yaml': yamlOf({ ...mappingRecord('app', '/', far), prefx: 1 }),
      'config/settings.env': 'PROT=8090\nRATELIMIT_PORT=99999\n',
    });
    const run = (...args: readonly string[]) => runCommand(['check', ...args], { cwd, env: { THREADS: 'many' } });
    const [text, json, github] = [await run(), await run('--json'), await run('--format', 'github')];
    assert.deepEqual([text.code, json.code, github.code], [1, 1, 1]);
    assert.deepEqual(
      JSON.parse(json.stdout).errors.map(({ file, line }: { file: string; line?: number }) => [file, line]),
      [
        ['config/settings.env', 1],
        ['config/settings.env', 2],
        ['<settings>', undefined],
        ['config/services/all.yaml', 1],
      ],
    );
    assert.match(
      text.stderr,
      /^config.settings\.env:1 {2}PROT is not a setting: did you mean PORT\?\n {4}frontdesk help/m,
    );
    assert.match(github.stdout, /^::error file=config.settings\.env,line=2::RATELIMIT_PORT="99999": expected/m);
  });

  it('prints why a server would not start in each format, and exits with 1', async () => {
    const env = { TLS_CERT: 'no%.pem', TLS_KEY: 'no.key' };
    const json = await check(records, ['--json'], env);
    assert.equal(json.code, 1);
    assert.match(
      JSON.parse(json.stdout).start_error,
      /^certificates cannot be used:\nno%\.pem {2}TLS_CERT cannot be read/,
    );
    const { code, stdout, stderr } = await check(records, ['--format', 'github'], env);
    assert.equal(code, 1);
    assert.match(stdout, /^::error::certificates cannot be used:%0Ano%25\.pem {2}TLS_CERT cannot be read/m);
    assert.match(stderr, /^frontdesk: certificates cannot be used:\nno%\.pem {2}TLS_CERT cannot be read/);
  });

  describe('--format github', () => {
    it('annotates the line of each error, escaped, and exits with 1', async () => {
      const cwd = await writeFiles({
        'config/services/a,b:%.yaml': 'apiVersion: gateway/v1\nkind: Mapping\nname: app\nprefx: /\nservice: far\n',
        'config/users.yaml': 'users: none\n',
      });
      const { code, stdout, stderr } = await runCommand(['check', '--format', 'github'], { cwd });
      assert.deepEqual([code, stderr], [1, '']);
      const lines = stdout.trimEnd().split('\n');
      assert.equal(lines.length, 2, stdout);
      assert.match(
        lines[0] ?? '',
        /^::error file=config\/services\/a%2Cb%3A%25\.yaml,line=4,title=Mapping app::unknown key "prefx".*%0AWrite "prefix"/,
      );
      assert.match(lines[1] ?? '', /^::error file=config\/users\.yaml,line=1::/);
    });

    it('annotates notices as warnings, and names files from the top of the repository', async () => {
      const cwd = await filesOf(mappingRecord('app', '/', far));
      await mkdir(join(cwd, 'empty'));
      const GITHUB_WORKSPACE = join(cwd, '..');
      const { code, stdout } = await runCommand(['check', '--format', 'github'], { cwd, env: { GITHUB_WORKSPACE } });
      assert.equal(code, 0);
      assert.match(
        stdout,
        /^::warning file=[^/]+\/config\/services\/all\.yaml,line=1,title=Mapping app::needs no credentials, because there is no AuthService%0AAdd an AuthService /m,
      );
    });

    it('prints nothing if there is nothing to report', async () => {
      const open = mappingRecord('app', '/', far, { bypass_auth: true });
      const cwd = await writeFiles({ 'config/services/all.yaml': yamlOf(open) });
      assert.deepEqual(await runCommand(['check', '--format', 'github'], { cwd }), { code: 0, stdout: '', stderr: '' });
    });
  });

  for (const [args, message] of [
    [['--format', 'sarif'], /argument 'sarif' is invalid\. Allowed choices are text, json, github\./],
    [['--json', '--format', 'github'], /option '--json' cannot be used with option '--format <format>'/],
  ] as const)
    it(`refuses ${args.join(' ')}`, async () => {
      const { code, stderr } = await check(records, args);
      assert.equal(code, 1);
      assert.match(stderr, message);
    });

  it('has a notice if routes are open because there is no AuthService, unless they are so on purpose', async () => {
    const { stdout, stderr } = await check([
      mappingRecord('a', '/a', far, { bypass_auth: true }),
      mappingRecord('b', '/b', far),
      mappingRecord('c', '/c', far),
    ]);
    assert.match(
      stderr,
      /^config\/services\/all\.yaml:\d+ {2}Mapping b: needs no credentials, because there is no AuthService\n {4}Add an AuthService .* or set bypass_auth: true/m,
    );
    assert.equal(stderr.split('needs no credentials').length, 2);
    assert.equal(stdout.match(/ {2}open {2}/g)?.length, 3);
  });

  for (const [what, open, guarded, isReported] of [
    ['an open prefix that is replaced', { prefix: '/login' }, { prefix: '/app' }, true],
    ['an open prefix that is replaced, below a guarded one', { prefix: '/public' }, { prefix: '/' }, true],
    [
      'an open prefix that is replaced, beside a guarded one that stays',
      { prefix: '/x' },
      { prefix: '/a', rewrite: '' },
      true,
    ],
    ['an open route to paths that have a guarded prefix too', { prefix: '/' }, { prefix: '/app' }, true],
    ['an open prefix that stays', { prefix: '/public', rewrite: '' }, { prefix: '/' }, false],
    ['an open prefix that is replaced by another path', { prefix: '/public', rewrite: '/www' }, { prefix: '/' }, false],
    ['an open path', { prefix: '/health', prefix_exact: true }, { prefix: '/' }, false],
    ['an open method of a guarded path', { prefix: '/app', method: 'GET' }, { prefix: '/app' }, false],
    ['an open path above a guarded one', { prefix: '/' }, { prefix: '/admin', rewrite: '' }, false],
    ['a version above a guarded path', { prefix: '/v1' }, { prefix: '/v1/admin', rewrite: '/admin' }, false],
    ['another service', { prefix: '/login', service: 'http://other:9000' }, { prefix: '/app' }, false],
  ] as const)
    it(`${isReported ? 'has a' : 'has no'} notice for ${what}`, async () => {
      const { stderr } = await check([
        authRecord,
        { ...mappingRecord('app', '', far), ...guarded },
        { ...mappingRecord('other', '', far, { bypass_auth: true }), ...open },
      ]);
      const notice =
        /Mapping other: is open, and leads to every path of the service for which Mapping app requires credentials \(config\/services\/all\.yaml:\d+\)\n {4}Write rewrite: "" /;
      assert.equal(notice.test(stderr), isReported, stderr);
      assert.equal(stderr.includes('is open'), isReported);
    });

  it('fits into 120 columns for the demo', async () => {
    const { stdout } = await runCommand(['check', '--demo']);
    assert.deepEqual(
      stdout.split('\n').filter(({ length }) => length > 120),
      [],
    );
  });
});
