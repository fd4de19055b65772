/** `frontdesk split`: every module as a process, started and stopped together; conformance/split has what they serve and SIGTERM. */
import assert from 'node:assert/strict';
import { cp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import request from 'supertest';
import { startSplit } from '../support/programs/frontdesk-process.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';

describe('frontdesk split', function () {
  this.timeout(60_000);
  const servers = testServers();
  const writeFiles = temporaryFiles();

  it('prints every address, re-reads the records on SIGHUP, and leaves no process behind when it is killed', async () => {
    const CONFIG_DIR = await writeFiles();
    await cp('config', CONFIG_DIR, { recursive: true });
    const server = await startSplit({ env: { CONFIG_DIR } });
    for (const name of ['gateway', 'rate limits', 'over HTTP', 'auth', 'hotel', 'car', 'api'])
      assert.match(server.stdout(), new RegExp(`^ {2}${name} +(http|grpc)://127\\.0\\.0\\.1:\\d+$`, 'm'));

    const more = 'apiVersion: gateway/v1\nkind: Mapping\nname: more\nprefix: /v1/rooms\nservice: hotel\n';
    await writeFile(join(CONFIG_DIR, 'services/more.yaml'), more);
    server.signal('SIGHUP');
    for (const module of ['gateway', 'auth', 'ratelimit', 'hotel', 'car', 'api'])
      await server.said(new RegExp(`"module":"${module}".*"configuration reloaded"`));
    await request(server.gatewayUrl).get('/v1/rooms').auth('demo', 'demo').expect(200);

    server.signal('SIGKILL');
    // Resolves when the last process has closed its output.
    await server.ended;
    await assert.rejects(fetch(server.gatewayUrl));
  });

  it('says why one of them cannot start, stops the others, and ends with 1', async () => {
    const { port } = await servers.tcp(() => {});
    const starting = startSplit({ env: { AUTH_PORT: String(port) } });
    await assert.rejects(starting, /ended with 1 .*EADDRINUSE.*AUTH_PORT.*the process of auth has ended, so all stop/s);
  });
});
