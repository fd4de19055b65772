/** The recipe "Limit by user": its files beside those of `init`, and the answers. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runFrontdesk } from '../support/programs/frontdesk-process.ts';
import { type Heard, hasCurl, onPorts, parseStory, runStory } from '../support/programs/shell-story.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { readRecipe } from './page.ts';
import { begin, gatewayPort, serve, stepCases, withPassword } from './steps.ts';

describe('the recipe: limit by user', function () {
  this.timeout(30_000);
  const writeFiles = temporaryFiles();
  const servers = testServers(after);
  const [commands = ''] = readRecipe('Put it in front of my service').blocks('sh');
  const recipe = readRecipe('Limit by user');
  const [story = ''] = recipe.blocks('sh');
  let directory: string;
  let upstream: Upstream;
  let heard: readonly (readonly Heard[])[] = [];

  before(async function () {
    if (!hasCurl()) this.skip();
    directory = await writeFiles();
    upstream = await startUpstream(servers);
    const ports = { 3000: upstream.port };
    const password = await begin(commands, { cwd: directory, ports });
    for (const [name, text] of Object.entries(recipe.files)) {
      await writeFile(join(directory, name), name.includes('/services/') ? onPorts(text, ports) : text);
    }
    const server = await serve(servers, commands, directory);
    heard = await runStory(withPassword(story, password), { cwd: directory, ports: { 8080: gatewayPort(server) } });
  });

  stepCases(parseStory(story), () => heard);

  it('hands on what is within the limits, with the path as it was sent', () => {
    assert.deepEqual(
      upstream.reached.map(({ url, headers }) => [url, headers['x-travel-user']]),
      ['/reports/1', '/reports/2', '/reports/3', '/orders/1'].map((url) => [url, 'me']),
    );
  });

  it('tells with the refusal which limit it was, and when to come again', () => {
    const refusal = heard[1]?.[0]?.head ?? '';
    assert.match(refusal, /^Retry-After: \d+\r?$/im);
    assert.match(refusal, /^RateLimit: .*"reports";r=0;t=\d+/im);
  });

  it('explains the descriptors and the limits of such a request', async () => {
    const [, line = ''] = /`npx frontdesk (explain GET [^`]*)`/.exec(recipe.text) ?? [];
    const { code, stdout } = await runFrontdesk(line.split(' '), { cwd: directory });
    assert.equal(code, 0);
    assert.match(
      stdout,
      /descriptor +user=me\n +60 per minute .*\n +descriptor +report_user=me\n +3 per day, "reports" /,
    );
  });
});
