/** The recipe "One process, or many": desks with the settings of its processes work together like one. */
import assert from 'node:assert/strict';
import type { Listeners } from 'frontdesk';
import request from 'supertest';
import { serveHere } from '../support/programs/command.ts';
import { freePort } from '../support/programs/free-port.ts';
import { isInstalled } from '../support/programs/installed.ts';
import { onPorts, runShell } from '../support/programs/shell-story.ts';
import { testServers } from '../support/serve.ts';
import { readRecipe, serveCommands } from './page.ts';

describe('the recipe: one process, or many', () => {
  const servers = testServers(after);
  const [processes = '', decision = ''] = readRecipe('One process, or many').blocks('sh');
  let running: readonly Listeners[];

  before(async () => {
    const shown = /\b90\d\d\b/g;
    const ports = new Map<string, number>();
    for (const port of processes.match(shown) ?? []) if (!ports.has(port)) ports.set(port, await freePort());
    // In one pass, because a free port may contain the digits of a shown one.
    const text = processes.replace(shown, (port) => String(ports.get(port)));
    const commands = serveCommands(text.replaceAll('\\\n', ''));
    running = await Promise.all(commands.map((command) => serveHere(servers, { ...command, cwd: '.' })));
  });

  it('lets the gateway reach every module', async () => {
    const gateway = running.at(-1)?.gateway?.url ?? '';
    for (const path of ['/v1/hotels', '/v1/cars']) {
      await request(gateway).get(path).expect(401);
      await request(gateway).get(path).auth('demo', 'demo').expect(200);
    }
    const { headers } = await request(gateway).get('/v1/hotels').auth('demo', 'demo').set('x-gateway-test-allow', 'me');
    assert.match(headers['ratelimit'] ?? '', /"x-gateway-test-allow";r=9;/);
    await request(gateway).get('/v2/messages/1').expect(200);
  });

  it('serves rate-limit decisions over HTTP', async function () {
    if (!isInstalled('curl')) this.skip();
    const { ratelimitHttp } = running.find((one) => one.ratelimitHttp !== undefined) ?? assert.fail();
    const ports = { 9005: ratelimitHttp?.port ?? 0 };
    assert.match(await runShell(decision, { cwd: '.', ports: ports }), /"overallCode": *"OK"/);
    assert.notEqual(onPorts(decision, ports), decision);
  });
});
