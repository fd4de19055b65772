/** The recipe "Several domains": certificates for two hosts, each with a service, and the redirect to HTTPS. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startServer } from '../support/programs/frontdesk-process.ts';
import { isInstalled } from '../support/programs/installed.ts';
import { type CurlResponse, onPorts, parseStory, runShell, runStory } from '../support/programs/shell-story.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { readRecipe, serveCommands } from './page.ts';
import { gatewayPort, stepCases } from './steps.ts';

describe('the recipe: several domains', () => {
  const writeFiles = temporaryFiles();
  const servers = testServers(after);
  const { files, blocks } = readRecipe('Several domains');
  const [certificates = '', serve = '', story = ''] = blocks('sh');
  let httpsPort: number;
  let responses: readonly (readonly CurlResponse[])[] = [];

  before(async function () {
    if (!isInstalled('curl') || !isInstalled('openssl')) this.skip();
    const shop = await servers.http((_req, res) => res.end('shop'));
    const api = await servers.http((_req, res) => res.end('api'));
    const cwd = await writeFiles(files);
    const name = 'config/services/domains.yaml';
    await writeFile(join(cwd, name), onPorts(files[name] ?? '', { 3000: shop.port, 3001: api.port }));
    await runShell(certificates, { cwd });
    const [{ args, env } = assert.fail()] = serveCommands(serve);
    assert.deepEqual([env['PORT'], env['HTTP_REDIRECT_PORT']], ['8443', '8080']);
    const server = await startServer(args, { cwd, env: { ...env, PORT: '0', HTTP_REDIRECT_PORT: '0' } });
    servers.later(server.stop);
    httpsPort = gatewayPort(server);
    const redirectPort = Number(new URL(server.redirectUrl).port);
    const ports = { 8443: httpsPort, 8080: redirectPort };
    responses = await runStory(parseStory(story), { cwd, ports });
  });

  stepCases(parseStory(story), () => responses);

  it('calls the service of each domain, and redirects to the same path', () => {
    assert.deepEqual(
      responses[0]?.map(({ body }) => body),
      ['shop', 'api'],
    );
    assert.match(
      responses[1]?.[0]?.head ?? '',
      new RegExp(`^Location: https://shop\\.example:${httpsPort}/orders\r?$`, 'm'),
    );
  });
});
