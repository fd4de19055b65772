/** The recipe for API keys of programs. */
import assert from 'node:assert/strict';
import { runCommand, serveHere } from '../support/programs/command.ts';
import { isInstalled } from '../support/programs/installed.ts';
import { type CurlResponse, onPorts, parseStory, runStory } from '../support/programs/shell-story.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { parseCommand, readRecipe } from './page.ts';
import { stepCases } from './steps.ts';

describe('the recipe for API keys', () => {
  const servers = testServers(after);
  const writeFiles = temporaryFiles();
  const recipe = readRecipe('API keys for programs');
  const story = parseStory(recipe.blocks('sh')[0] ?? '');
  let service: Upstream;
  let responses: readonly (readonly CurlResponse[])[];

  before(async function () {
    if (!isInstalled('curl')) this.skip();
    service = await startUpstream(servers);
    const files = Object.entries(recipe.files).map(([name, text]) => [
      name,
      onPorts(text, text.includes(':3000') ? { 3000: service.port } : {}),
    ]);
    const directory = await writeFiles(Object.fromEntries(files));
    const [, shown = ''] = /^key=\$\((.*)\)$/m.exec(story.preparation) ?? [];
    const { stdout } = await runCommand(parseCommand(shown).args, { cwd: directory });
    const { gateway } = await serveHere(servers, { cwd: directory });
    const preparation = story.preparation.replace(/(?<=^key=).*$/m, () => stdout.trim());
    responses = await runStory({ ...story, preparation }, { cwd: directory, ports: { 8080: gateway.port } });
  });

  stepCases(story, () => responses);

  it('tells the service the user and the name of the key, and not the key', () => {
    assert.deepEqual(
      service.reached.map(({ headers }) => [headers['x-travel-user'], headers['x-api-key-name'], headers['x-api-key']]),
      [
        ['nightly-job', 'key-1', undefined],
        ['nightly-job', 'key-1', undefined],
      ],
    );
  });
});
