/** The Emissary part of "Use authentication and limits from Envoy": calls the server as Emissary would. */
import assert from 'node:assert/strict';
import { parseAllDocuments } from 'yaml';
import { loadConfiguration } from '#config';
import { serveHere } from '../support/programs/command.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { createReflectionClient, type ReflectionClient } from '../support/wire/reflection-client.ts';
import { readRecipe, serveCommands } from './page.ts';

interface Entry {
  readonly key: string;
  readonly value: string;
}

interface Action {
  readonly request_headers?: { readonly header_name: string; readonly key: string };
  readonly remote_address?: object;
}

interface Caller {
  readonly headers: Readonly<Record<string, string>>;
  readonly address: string;
}

/** Returns no descriptor if one of its labels has no value, as Emissary does. */
function descriptorOf(actions: readonly Action[], { headers, address }: Caller): { entries: Entry[] }[] {
  const entries = actions.map(({ request_headers: header, remote_address: remote }): Entry | undefined => {
    if (remote !== undefined) return { key: 'remote_address', value: address };
    const value = headers[header?.header_name ?? ''];
    return value === undefined ? undefined : { key: header?.key ?? '', value };
  });
  const known = entries.filter((entry) => entry !== undefined);
  return known.length === entries.length ? [{ entries: known }] : [];
}

describe('the recipe: use authentication and limits from Emissary', () => {
  const writeFiles = temporaryFiles();
  const servers = testServers(after);
  const { files, blocks } = readRecipe('Use authentication and limits from Envoy');
  const { 'emissary.yaml': resources = '', 'config/ratelimit/edge.yaml': limits = '' } = files;
  const [service, , mapping] = parseAllDocuments(resources).map((one) => one.toJS().spec);
  const [command = assert.fail()] = serveCommands(blocks('sh')[0] ?? '');
  let client: ReflectionClient;

  before(async () => {
    const cwd = await writeFiles({ 'config/ratelimit/edge.yaml': limits, 'config/users.yaml': 'users: []\n' });
    const { ratelimit } = await serveHere(servers, { args: command.args, cwd });
    client = createReflectionClient(ratelimit.url);
    servers.later(async () => client.close());
  });

  async function ask(caller: Caller): Promise<unknown> {
    const groups: readonly Readonly<Record<string, readonly Action[]>>[] = mapping.labels[service.domain];
    const descriptors = groups.flatMap(Object.values<readonly Action[]>).flatMap((list) => descriptorOf(list, caller));
    const request = { domain: service.domain, descriptors };
    const answer = await client.call('envoy.service.ratelimit.v3.RateLimitService', 'ShouldRateLimit', request);
    return 'overallCode' in answer && answer.overallCode;
  }

  it('counts requests by their labels, in the domain of the RateLimitService', async () => {
    assert.equal(service.protocol_version, 'v3');
    const caller = { headers: { 'x-api-key': 'one' }, address: '10.0.0.1' };
    const codes = await Promise.all(Array.from({ length: 100 }, () => ask(caller)));
    assert.deepEqual([...new Set(codes)], ['OK']);
    assert.equal(await ask(caller), 'OVER_LIMIT');
    assert.equal(await ask({ ...caller, headers: { 'x-api-key': 'other' } }), 'OK');
    assert.equal(await ask({ ...caller, headers: {} }), 'OK');
  });

  it('shows resources that frontdesk can load too', async () => {
    const directory = await writeFiles({ 'services/emissary.yaml': resources });
    const { errors } = await loadConfiguration(directory, { gatewayDomain: 'getambassador.io' });
    assert.deepEqual(errors, []);
  });
});
