/** The recipe "Two replicas on PostgreSQL and Redis". Needs PostgreSQL, Redis, nginx and curl. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { cp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createPostgresDatabase } from '../support/databases.ts';
import { freePort } from '../support/programs/free-port.ts';
import { type Server, scratch, startServer, startServers } from '../support/programs/frontdesk-process.ts';
import { isInstalled } from '../support/programs/installed.ts';
import { nginx, startProxy } from '../support/programs/proxy-process.ts';
import { type CurlResponse, onPorts, parseStory, runShell, runStory } from '../support/programs/shell-story.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { readRecipe, readRun, serveCommands } from './page.ts';
import { gatewayPort, stepCases } from './steps.ts';

const { TEST_POSTGRES_URL: postgresUrl, TEST_REDIS_URL: redisUrl } = process.env;
const demo = fileURLToPath(new URL('../../config', import.meta.url));

describe('the recipe: two replicas on PostgreSQL and Redis', () => {
  if (postgresUrl === undefined || redisUrl === undefined || !isInstalled('nginx') || !isInstalled('curl')) {
    it('needs TEST_POSTGRES_URL, TEST_REDIS_URL, and nginx and curl on the PATH');
    return;
  }
  const writeFiles = temporaryFiles();
  const servers = testServers(after);
  const recipe = readRecipe('Two replicas on PostgreSQL and Redis');
  const [commands = '', story = ''] = recipe.blocks('sh');
  const { command, output } = readRun(recipe.blocks('console')[0] ?? '');
  let directory: string;
  let replicas: readonly Server[] = [];
  let ports: Readonly<Record<number, number>>;
  let counted: string;
  let responses: readonly (readonly CurlResponse[])[] = [];

  before(async () => {
    directory = await writeFiles();
    await cp(demo, join(directory, 'config'), { recursive: true });
    for (const [name, text] of Object.entries(recipe.files)) await writeFile(join(directory, name), text);
    const database = await createPostgresDatabase(postgresUrl);
    servers.later(database.remove);
    const services = { DATABASE_URL: database.url, REDIS_URL: redisUrl, REDIS_TIMEOUT_MS: '10000' };
    const starting = serveCommands(commands).map(({ args, env }) =>
      startServer(args, { cwd: directory, env: { ...env, ...scratch, ...services } }),
    );
    replicas = await startServers(starting);
    for (const { stop } of replicas) servers.later(stop);
    const [one = 0, other = 0] = replicas.map(gatewayPort);
    const front = await freePort();
    ports = { 8080: front, 8001: one, 8002: other };
    const proxy = await startProxy(nginx, onPorts(recipe.blocks('nginx')[0] ?? '', ports), front);
    servers.later(proxy.remove);
    const label = 'x-gateway-test-allow: ';
    assert.ok(command.includes(`${label}me`));
    // Redis may have counters of an earlier run.
    const own = command.replace(`${label}me`, `${label}${randomUUID()}`);
    counted = await runShell(own, { cwd: directory, ports: { 8080: front } });
    responses = await runStory(parseStory(story), { cwd: directory, ports });
  });

  it('configures each replica with PostgreSQL, Redis and the proxy', () => {
    const environments = serveCommands(commands).map(({ env }) => env);
    assert.equal(environments.length, 2);
    for (const { DATABASE_URL = '', REDIS_URL = '', TRUSTED_PROXIES, PORT = '' } of environments) {
      assert.match(`${DATABASE_URL} ${REDIS_URL}`, /^postgres:\/\/\S+ redis:\/\/\S+$/);
      assert.equal(TRUSTED_PROXIES, '127.0.0.1');
      assert.ok(recipe.blocks('nginx')[0]?.includes(`server 127.0.0.1:${PORT};`));
    }
  });

  it('admits exactly as many requests as the limit allows, across both replicas', () => {
    assert.equal(counted, output);
  });

  stepCases(parseStory(story), () => responses);

  it('shows the booking on both replicas, with a URL at the address that the client used', () => {
    const [made, ...seen] = responses.flat().map(({ body }) => JSON.parse(body));
    assert.ok(made.url.startsWith(`http://127.0.0.1:${ports[8080]}/v1/hotels/bookings/`));
    assert.deepEqual(
      seen.map(({ id }) => id),
      [made.id, made.id],
    );
  });

  it('ignores forwarded addresses that a client sends', async () => {
    const headers = { 'X-Forwarded-Host': 'evil.example', 'X-Forwarded-Prefix': '/evil', 'X-Forwarded-Root': '/evil' };
    for (const path of ['/v1/messages/1', '/v1/nothing']) {
      const answer = await fetch(`http://127.0.0.1:${ports[8080]}${path}`, { headers });
      const { url, info_url: infoUrl } = (await answer.json()) as Readonly<Record<string, string>>;
      assert.ok(
        (url ?? infoUrl)?.startsWith(`http://127.0.0.1:${ports[8080]}/${url ? 'v1' : 'gateway'}/`),
        url ?? infoUrl,
      );
    }
  });

  it('sends half of the requests to each replica', async () => {
    for (const replica of replicas) {
      const { code, stdout } = await replica.stop();
      assert.equal(code, 0);
      const paths = stdout.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line).path] : []));
      assert.equal(paths.filter((path) => path === '/v1/hotels').length, 6);
    }
  });
});
