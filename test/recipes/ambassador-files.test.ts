/** The recipe "Import Ambassador files": the output of `check`, and the responses when the files are served. */
import assert from 'node:assert/strict';
import { runCommand, serveHere } from '../support/programs/command.ts';
import { isInstalled } from '../support/programs/installed.ts';
import { type CurlResponse, onPorts, parseStory, runStory } from '../support/programs/shell-story.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { onAnyMachine, parseCommand, readRecipe, readRun, serveCommands } from './page.ts';
import { stepCases } from './steps.ts';

describe('the recipe: import Ambassador files', () => {
  const writeFiles = temporaryFiles();
  const servers = testServers(after);
  const recipe = readRecipe('Import Ambassador files');
  const [commands = '', story = ''] = recipe.blocks('sh');
  let directory: string;
  let quote: Upstream;
  let shop: Upstream;
  let auth: Upstream;
  let responses: readonly (readonly CurlResponse[])[] = [];

  before(async function () {
    if (!isInstalled('curl')) this.skip();
    directory = await writeFiles(recipe.files);
    quote = await startUpstream(servers);
    shop = await startUpstream(servers);
    auth = await startUpstream(servers, (res, { headers }) => {
      const [, name = ''] = /^Bearer (.*)$/.exec(headers.authorization ?? '') ?? [];
      res.writeHead(name === '' ? 401 : 200, name === '' ? {} : { 'X-User': name }).end();
    });
    const ports = { 3000: quote.port, 3001: shop.port, 3002: auth.port };
    const [command = assert.fail()] = serveCommands(onPorts(commands, ports));
    const { gateway } = await serveHere(servers, { ...command, cwd: directory });
    responses = await runStory(parseStory(story), { cwd: directory, ports: { 8080: gateway.port } });
  });

  it('check prints the output on the page: the routes and the unsupported fields', async () => {
    const { command, output } = readRun(recipe.blocks('console')[0] ?? '');
    const { args, env } = parseCommand(command);
    const { stdout, stderr } = await runCommand(args, { cwd: directory, env });
    assert.equal(onAnyMachine(stderr + stdout), onAnyMachine(output));
  });

  stepCases(parseStory(story), () => responses);

  it('routes to the services in the files, with the user from the auth service', () => {
    assert.deepEqual([quote.only().url, quote.only().headers['x-user']], ['/today', 'ann']);
    assert.equal(shop.only().url, '/');
    assert.equal(auth.reached.length, 2);
  });
});
