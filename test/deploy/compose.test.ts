/** The file for Compose: it follows the specification, and its Redis, its secrets and frontdesk work together. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseEnv, promisify } from 'node:util';
import { requireSettings } from '#config';
import { settingTable } from '#server/product';
import { freePort } from '../support/programs/free-port.ts';
import { startServer } from '../support/programs/frontdesk-process.ts';
import { describeWith, isInstalled } from '../support/programs/installed.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { eventually } from '../support/waiting.ts';

interface Service {
  readonly command: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly user: string;
  readonly env_file: readonly [{ readonly path: string }];
  readonly stop_grace_period: string;
  readonly healthcheck?: { readonly test: readonly [string, string] };
  readonly depends_on: Readonly<Record<string, { readonly condition: string }>>;
  readonly secrets: readonly { readonly source: string; readonly target?: string }[];
}

interface Composition {
  readonly services: Readonly<Record<'frontdesk' | 'redis' | 'postgres', Service>>;
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
}

const folder = fileURLToPath(new URL('../../config/deploy/', import.meta.url));

describeWith('compose-spec', 'the file for Compose', () => {
  if (!isInstalled('openssl')) {
    it('needs openssl on the PATH');
    return;
  }
  const writeFiles = temporaryFiles();
  const servers = testServers();
  let directory: string;
  let composition: Composition;

  before(async () => {
    directory = await writeFiles();
    await cp(join(folder, 'compose'), directory, { recursive: true });
    const page = await readFile(join(folder, 'README.md'), 'utf8');
    const [, commands = ''] = /^```sh\n(postgres=.*?)^```$/ms.exec(page) ?? assert.fail('the page makes no secrets');
    await promisify(execFile)('bash', ['-euc', commands], { cwd: directory });
    // This program does not replace variables, as Docker Compose does with those of `.env`.
    const file = join(directory, 'compose.yaml');
    const { FRONTDESK_USER = '' } = parseEnv(await readFile(join(directory, '.env'), 'utf8'));
    const text = await readFile(file, 'utf8');
    await writeFile(file, text.replace(/\$\{FRONTDESK_USER\b.*?\}/, FRONTDESK_USER));
    const { stdout } = await promisify(execFile)('compose-spec', ['--format', 'json', file], { cwd: directory });
    composition = JSON.parse(stdout);
  });

  async function secretSetting(name: string): Promise<string> {
    const [{ path }] = composition.services.frontdesk.env_file;
    return parseEnv(await readFile(path, 'utf8'))[name] ?? assert.fail(`there is no ${name}`);
  }

  it('contains no password', async () => {
    const text = await readFile(join(directory, 'compose.yaml'), 'utf8');
    const password = await readFile(join(directory, 'secrets/postgres-password'), 'utf8');
    assert.match(password, /^[0-9a-f]{48}$/);
    assert.ok(!text.includes(password));
  });

  it('starts frontdesk when both databases are healthy, as the owner of the configuration', () => {
    const { frontdesk, redis, postgres } = composition.services;
    const conditions = Object.entries(frontdesk.depends_on).map(([name, { condition }]) => `${name} ${condition}`);
    assert.deepEqual(conditions.toSorted(), ['postgres service_healthy', 'redis service_healthy']);
    assert.ok(redis.healthcheck && postgres.healthcheck);
    assert.equal(frontdesk.user, `${process.getuid?.()}:${process.getgid?.()}`);
  });

  it('allows more time for a stop than a stop may take', () => {
    const { shutdownTimeoutMs } = requireSettings(settingTable, {});
    const { stop_grace_period: grace } = composition.services.frontdesk;
    assert.ok(Number.parseInt(grace, 10) * 1000 > shutdownTimeoutMs + 1000, grace);
  });

  it('gives PostgreSQL and frontdesk the same user, password and database', async () => {
    const { postgres } = composition.services;
    const { username, password, hostname, pathname } = new URL(await secretSetting('DATABASE_URL'));
    const { POSTGRES_USER, POSTGRES_DB, POSTGRES_PASSWORD_FILE } = postgres.environment;
    assert.deepEqual([username, hostname, pathname], [POSTGRES_USER, 'postgres', `/${POSTGRES_DB}`]);
    const { file } = composition.secrets[POSTGRES_PASSWORD_FILE?.split('/').at(-1) ?? ''] ?? assert.fail();
    assert.equal(await readFile(file, 'utf8'), password);
  });

  it('runs a Redis that counts for frontdesk, and allows nothing else', async function () {
    if (!isInstalled('redis-server')) this.skip();
    const port = await freePort();
    const { redis } = composition.services;
    const { file } = composition.secrets['redis.acl'] ?? assert.fail('there is no list of rights');
    const command = redis.command.replace('/run/secrets/redis.acl', file);
    const running = execFile('sh', ['-c', `exec ${command} --port ${port}`], { cwd: directory });
    servers.later(() => running.kill());
    const run = (command: string) =>
      promisify(execFile)('sh', ['-c', command.replaceAll('redis-cli', `redis-cli -p ${port}`)]).then(
        (one) => one.stdout,
      );
    const [, health = ''] = redis.healthcheck?.test ?? [];
    await eventually(() => run(health), 50);
    assert.match(await run('redis-cli get frontdesk:1'), /NOPERM/);

    const url = (await secretSetting('REDIS_URL')).replace('@redis', `@127.0.0.1:${port}`);
    const env = { REDIS_URL: url, RATELIMIT_FAIL_OPEN: 'false', REDIS_TIMEOUT_MS: '10000' };
    const { gatewayUrl, stop } = await startServer(['--demo'], { env });
    servers.later(stop);
    const headers = { authorization: `Basic ${btoa('demo:demo')}`, 'x-gateway-test-allow': 'me' };
    const { status } = await fetch(`${gatewayUrl}/v1/hotels`, { headers });
    assert.equal(status, 200);
    const secret = new URL(url).password;
    assert.equal(await run(`redis-cli --no-auth-warning --user frontdesk -a ${secret} get frontdesk:1`), '\n');
    assert.match(await run(`redis-cli --no-auth-warning --user frontdesk -a ${secret} flushall`), /NOPERM/);
  });
});
