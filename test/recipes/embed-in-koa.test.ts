/** The recipe "Embed in Koa": compiles its app and runs it unchanged, with the packages that an embedder installs. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { runCommand } from '../support/programs/command.ts';
import { freePort } from '../support/programs/free-port.ts';
import { type Program, startProgram } from '../support/programs/frontdesk-process.ts';
import { isInstalled } from '../support/programs/installed.ts';
import { type CurlResponse, onPorts, parseStory, runStory } from '../support/programs/shell-story.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { speak, upgradeRequest } from '../support/wire/peer.ts';
import { type SwitchingUpstream, startSwitchingUpstream } from '../support/wire/switching-upstream.ts';
import { parseCommand, readRecipe } from './page.ts';
import { passwordIn, stepCases, withPassword } from './steps.ts';

const repository = fileURLToPath(new URL('../..', import.meta.url));

const examples = [...readFileSync(join(repository, 'README.md'), 'utf8').matchAll(/^```ts\n(.*?)^```$/gms)].map(
  ([, example = '']) => example,
);

describe('the recipe: embed in Koa', () => {
  const writeFiles = temporaryFiles();
  const servers = testServers(after);
  const recipe = readRecipe('Embed in Koa');
  const [commands = '', start = '', story = ''] = recipe.blocks('sh');
  const { 'app.mjs': app = '', 'config/services/live.yaml': mapping = '' } = recipe.files;
  let directory: string;
  let port: number;
  let password: string;
  let live: SwitchingUpstream;
  let program: Program | undefined;
  let responses: readonly (readonly CurlResponse[])[] = [];

  before(async function () {
    if (!isInstalled('curl')) this.skip();
    directory = await installPackages();
    live = await startSwitchingUpstream(servers);
    const { stdout } = await runCommand(parseCommand(commands.trim()).args, { cwd: directory });
    password = passwordIn(stdout);
    await writeFile(join(directory, 'config/services/live.yaml'), onPorts(mapping, { 4000: live.port }));
    port = await freePort();
    assert.equal(start, 'node app.mjs\n');
    const file = join(directory, 'app.mjs');
    const printing = "server.once('listening', () => process.stdout.write('listening\\n'));\n";
    await writeFile(file, app.replace('app.listen(3000,', `app.listen(${port},`) + printing);
    program = startProgram(file, { cwd: directory });
    await program.waitForOutput(/^listening\n/);
    responses = await runStory(withPassword(story, password), { cwd: directory, ports: { 3000: port } });
  });

  after(async () => {
    program?.signal('SIGKILL');
    await program?.ended;
  });

  async function installPackages(): Promise<string> {
    const made = await writeFiles();
    await mkdir(join(made, 'node_modules'));
    await symlink(repository, join(made, 'node_modules/frontdesk'));
    for (const name of ['koa', 'koa-mount', '@types']) {
      await symlink(join(repository, 'node_modules', name), join(made, 'node_modules', name));
    }
    return made;
  }

  it('compiles, and so do the examples in README.md', async () => {
    assert.equal(examples.length, 2);
    // Compiles against the published build, as an embedder does.
    const compilerOptions = { types: ['node'], skipLibCheck: true, customConditions: [], paths: {} };
    const config = { extends: join(repository, 'tsconfig.json'), include: ['*.mts'], compilerOptions };
    await writeFile(join(directory, 'tsconfig.json'), JSON.stringify(config));
    await writeFile(join(directory, 'app.mts'), app);
    for (const [index, example] of examples.entries()) {
      assert.ok(example.includes('createFrontdesk('));
      await writeFile(join(directory, `readme-${index}.mts`), example);
    }
    await promisify(execFile)(join(repository, 'node_modules/.bin/tsc'), ['-p', directory]);
  });

  stepCases(parseStory(story), () => responses);

  it('passes the path below the mount and the user name to the service of the app', () => {
    assert.equal(responses[0]?.[0]?.body, 'The host app.\n');
    assert.deepEqual(JSON.parse(responses[2]?.[0]?.body ?? ''), { path: '/7', user: 'me' });
  });

  it('switches protocols only for callers with credentials', async () => {
    const refused = speak(port, upgradeRequest('/desk/live'));
    await refused.until('\r\n\r\n');
    assert.match(refused.received(), /^HTTP\/1\.1 401 /);
    assert.equal(live.upgrades.length, 0);
    const switched = speak(port, upgradeRequest('/desk/live', [`Authorization: Basic ${btoa(`me:${password}`)}`]));
    await switched.until('\r\n\r\n');
    assert.match(switched.received(), /^HTTP\/1\.1 101 /);
    assert.equal(live.upgrades[0]?.headers['x-travel-user'], 'me');
    for (const { socket } of [refused, switched]) socket.destroy();
  });

  it('stops on SIGTERM', async () => {
    program?.signal('SIGTERM');
    const ended = await program?.ended;
    assert.deepEqual(ended && [ended.code, ended.stderr], [0, '']);
  });
});
