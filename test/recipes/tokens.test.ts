/** The recipe for tokens of an identity provider, with an issuer of this test in its place. */
import assert from 'node:assert/strict';
import { serveHere } from '../support/programs/command.ts';
import { isInstalled } from '../support/programs/installed.ts';
import { type CurlResponse, onPorts, parseStory, runStory } from '../support/programs/shell-story.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { claimsOf, createKey, signToken, startKeyServer } from '../support/tokens.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { readRecipe } from './page.ts';
import { stepCases } from './steps.ts';

describe('the recipe for tokens of an identity provider', () => {
  const servers = testServers(after);
  const writeFiles = temporaryFiles();
  const recipe = readRecipe('Accept tokens of your identity provider');
  const story = parseStory(recipe.blocks('sh')[0] ?? '');
  let service: Upstream;
  let responses: readonly (readonly CurlResponse[])[];

  before(async function () {
    if (!isInstalled('curl')) this.skip();
    const key = createKey('RS256', 'first');
    const keys = await startKeyServer(servers, [key]);
    service = await startUpstream(servers);
    const files = Object.entries(recipe.files).map(([name, text]) => [
      name,
      onPorts(
        text.replace('https://accounts.example.com/keys', keys.uri),
        text.includes(':3000') ? { 3000: service.port } : {},
      ),
    ]);
    const directory = await writeFiles(Object.fromEntries(files));
    const { gateway } = await serveHere(servers, { cwd: directory });
    const token = signToken(key, claimsOf({ email: 'ann@example.com', tenant: 'red', scope: 'orders:read' }));
    const preparation = story.preparation.replace(/(?<=token=').*(?=')/, token);
    responses = await runStory({ ...story, preparation }, { cwd: directory, ports: { 8080: gateway.port } });
  });

  stepCases(story, () => responses);

  it('tells the service the user and a claim, whatever the client sends', () => {
    assert.deepEqual(
      service.reached.map(({ method, headers }) => [method, headers['x-travel-user'], headers['x-email']]),
      [
        ['GET', 'ann', 'ann@example.com'],
        ['GET', 'ann', 'ann@example.com'],
      ],
    );
  });

  it('asks for a token', () => {
    const heads = responses.map((one) => one[0]?.head ?? '');
    assert.match(heads[1] ?? '', /^WWW-Authenticate: Bearer realm="api"\r?$/im);
    assert.match(heads[2] ?? '', /^WWW-Authenticate: Bearer realm="api", error="insufficient_scope"\r?$/im);
  });
});
