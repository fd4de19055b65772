/** The recipe "Run it as a service": starts the commands of its systemd unit and its Kubernetes pod. */
import assert from 'node:assert/strict';
import request from 'supertest';
import { parse } from 'yaml';
import { requireSettings } from '#config';
import { settingTable } from '#server/product';
import { serveHere } from '../support/programs/command.ts';
import { testServers } from '../support/serve.ts';
import { readRecipe } from './page.ts';

interface Pod {
  readonly terminationGracePeriodSeconds: number;
  readonly containers: readonly [
    {
      readonly command: readonly string[];
      readonly env: readonly { readonly name: string; readonly value: string }[];
      readonly readinessProbe: { readonly httpGet: { readonly path: string } };
    },
  ];
}

/** Settings for the demo's configuration: free ports and a short drain. */
const here = { PORT: '0', ADMIN_PORT: '0', DRAIN_MS: '1', ALLOW_DEMO_USERS: 'true' };
const program = 'node_modules/.bin/frontdesk serve ';

describe('the recipe: run it as a service', () => {
  const servers = testServers();
  const recipe = readRecipe('Run it as a service');
  const unit = recipe.files['frontdesk.service'] ?? '';
  const pod: Pod = parse(recipe.blocks('yaml')[0] ?? '');
  const [container] = pod.containers;
  const podEnv = Object.fromEntries(container.env.map(({ name, value }) => [name, value]));

  async function runs(command: string, env: Readonly<Record<string, string>>): Promise<void> {
    assert.ok(command.includes(program), command);
    const args = (command.split(program)[1] ?? '').split(' ');
    const { admin } = await serveHere(servers, { args, env: { ...env, ...here }, cwd: '.' });
    await request(admin.url).get(container.readinessProbe.httpGet.path).expect(200);
  }

  it('starts with the command and environment of the systemd unit', async () => {
    const lines = [...unit.matchAll(/^Environment=(.*)$/gm)].map(([, line = '']) => line).join(' ');
    const settings = [...lines.matchAll(/(\w+)=(\S+)/g)];
    const env = Object.fromEntries(settings.map(([, name = '', value = '']) => [name, value]));
    await runs(/^ExecStart=(.*)$/m.exec(unit)?.[1] ?? '', env);
  });

  it('finds the Node that is installed beside frontdesk', () => {
    const [, folder = ''] = /^ExecStart=(.*)\/frontdesk /m.exec(unit) ?? [];
    assert.match(unit, new RegExp(`^Environment=PATH=${folder}:`, 'm'));
  });

  it('starts with the command and environment of the Kubernetes pod', () => runs(container.command.join(' '), podEnv));

  it('allows more time for a stop than a stop may take', () => {
    const { shutdownTimeoutMs } = requireSettings(settingTable, {});
    const seconds = Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1]);
    assert.ok(seconds * 1000 > shutdownTimeoutMs + 1000);
    assert.ok(pod.terminationGracePeriodSeconds * 1000 > Number(podEnv['DRAIN_MS']) + shutdownTimeoutMs + 1000);
  });
});
