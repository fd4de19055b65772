/** The recipe "Put it in front of my service", from `init` to the answers. */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Heard, hasCurl, parseStory, runStory } from '../support/programs/shell-story.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { readRecipe } from './page.ts';
import { begin, gatewayPort, serve, stepCases, withPassword } from './steps.ts';

describe('the recipe: put it in front of my service', function () {
  this.timeout(30_000);
  const writeFiles = temporaryFiles();
  const servers = testServers(after);
  const [commands = '', story = ''] = readRecipe('Put it in front of my service').blocks('sh');
  let directory: string;
  let upstream: Upstream;
  let heard: readonly (readonly Heard[])[] = [];

  before(async function () {
    if (!hasCurl()) this.skip();
    directory = await writeFiles();
    upstream = await startUpstream(servers);
    const password = await begin(commands, { cwd: directory, ports: { 3000: upstream.port } });
    const server = await serve(servers, commands, directory);
    heard = await runStory(withPassword(story, password), { cwd: directory, ports: { 8080: gatewayPort(server) } });
  });

  stepCases(parseStory(story), () => heard);

  it('writes three files, and the service gets the path and who is calling', async () => {
    const files = await readdir(join(directory, 'config'), { recursive: true });
    assert.equal(files.filter((name) => name.endsWith('.yaml')).length, 3);
    assert.equal(upstream.only().url, '/orders/1');
    assert.equal(upstream.only().headers['x-travel-user'], 'me');
    assert.match(heard[1]?.[0]?.head ?? '', /^RateLimit: "user";r=59;/im);
    assert.equal(heard[1]?.[0]?.body, 'ok');
  });
});
