/** The recipe "Put it in front of my service", from `init` to the responses, and its sequel "Limit by user". */
import assert from 'node:assert/strict';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runCommand } from '../support/programs/command.ts';
import { type Server, startServer } from '../support/programs/frontdesk-process.ts';
import { isInstalled } from '../support/programs/installed.ts';
import { type CurlResponse, onPorts, parseStory, runShell, runStory } from '../support/programs/shell-story.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { readRecipe, serveCommands, withoutServe } from './page.ts';
import { gatewayPort, passwordIn, stepCases, withPassword } from './steps.ts';

describe('the recipe: put it in front of my service', () => {
  const writeFiles = temporaryFiles();
  const servers = testServers(after);
  const [commands = '', story = ''] = readRecipe('Put it in front of my service').blocks('sh');
  let directory: string;
  let upstream: Upstream;
  let password: string;
  let server: Server;
  let port: number;
  let responses: readonly (readonly CurlResponse[])[] = [];

  before(async function () {
    if (!isInstalled('curl')) this.skip();
    directory = await writeFiles();
    upstream = await startUpstream(servers);
    const ports = { 3000: upstream.port };
    password = passwordIn(await runShell(withoutServe(commands), { cwd: directory, ports }));
    const [command = assert.fail()] = serveCommands(commands);
    server = await startServer(command.args, { cwd: directory, env: command.env });
    servers.later(server.stop);
    port = gatewayPort(server);
    responses = await runStory(withPassword(story, password), { cwd: directory, ports: { 8080: port } });
  });

  stepCases(parseStory(story), () => responses);

  it('writes three YAML files, and passes the path and the user name to the service', async () => {
    const files = await readdir(join(directory, 'config'), { recursive: true });
    assert.equal(files.filter((name) => name.endsWith('.yaml')).length, 3);
    assert.equal(upstream.only().url, '/orders/1');
    assert.equal(upstream.only().headers['x-travel-user'], 'me');
    assert.match(responses[1]?.[0]?.head ?? '', /^RateLimit: "user";r=599;/im);
    assert.equal(responses[1]?.[0]?.body, 'ok');
  });

  describe('and the recipe: limit by user', () => {
    const recipe = readRecipe('Limit by user');
    const [limited = ''] = recipe.blocks('sh');

    before(async () => {
      const { 'config/ratelimit/gateway.yaml': limits = '', 'config/services/reports.yaml': mapping = '' } =
        recipe.files;
      await writeFile(join(directory, 'config/ratelimit/gateway.yaml'), limits);
      await server.waitForOutput(/"generation":2,.*"configuration reloaded"/);
      await writeFile(join(directory, 'config/services/reports.yaml'), onPorts(mapping, { 3000: upstream.port }));
      await server.waitForOutput(/"mappings":2,.*"configuration reloaded"/);
      responses = await runStory(withPassword(limited, password), { cwd: directory, ports: { 8080: port } });
    });

    stepCases(parseStory(limited), () => responses);

    it('forwards requests within the limits, with the path unchanged', () => {
      assert.deepEqual(
        upstream.reached.slice(1).map(({ url, headers }) => [url, headers['x-travel-user']]),
        ['/reports/1', '/reports/2', '/reports/3', '/orders/1'].map((url) => [url, 'me']),
      );
    });

    it('names the exhausted limit in the 429 and says when to try again', () => {
      const refusal = responses[1]?.[0]?.head ?? '';
      assert.match(refusal, /^Retry-After: \d+\r?$/im);
      assert.match(refusal, /^RateLimit: .*"reports";r=0;t=\d+/im);
    });

    it('explains the descriptors and the limits of a request', async () => {
      const [, line = ''] = /`npx frontdesk (explain GET [^`]*)`/.exec(recipe.text) ?? [];
      const { code, stdout } = await runCommand(line.split(' '), { cwd: directory });
      assert.equal(code, 0);
      assert.match(
        stdout,
        /descriptor +user=me\n +600 per minute, token bucket .*\n +descriptor +report_user=me\n +3 per day, "reports" /,
      );
    });
  });
});
