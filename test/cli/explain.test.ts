/** `frontdesk explain`: its output, its exit code, and the configurations that it accepts. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { requireSettings } from '#config';
import { settingTable } from '#server/product';
import { type ExplainOptions, explainOnce } from '../../src/cli/explain.ts';
import { authRecord, mappingRecord } from '../support/desks.ts';
import { runCommand } from '../support/programs/command.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles, yamlOf } from '../support/temporary-files.ts';

const readme = readFileSync(new URL('../../src/explain/README.md', import.meta.url), 'utf8');

/** Finds the README's example: the command after the prompt, split as a shell would, and its output. */
function shownRun(): { args: readonly string[]; output: string } {
  const [, line = '', output = ''] =
    /^```console\n\$ npx frontdesk (explain .*)\n((?:(?!```).*\n)*)```$/m.exec(readme) ?? [];
  const args = [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? '');
  return { args, output };
}

describe('frontdesk explain', () => {
  const writeFiles = temporaryFiles();
  const servers = testServers();

  it('prints the output that the README shows', async () => {
    const shown = shownRun();
    const { code, stdout, stderr } = await runCommand(shown.args);
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    assert.ok(shown.output.length > 100);
    assert.equal(stdout, shown.output);
  });

  it('exits with 1 and the reason when a request is rejected before routing', async () => {
    const { code, stdout, stderr } = await runCommand(['explain', 'get', '/v1/..%2fx', '--json']);
    assert.equal(code, 1);
    assert.equal(JSON.parse(stdout).outcome.problem, 'bad-path');
    assert.match(stderr, /^frontdesk: the request is rejected before routing: .*\n$/);
  });

  it('predicts which paths STRICT_PATHS rejects, and why', async () => {
    const service = 'http://localhost:9';
    const open = mappingRecord('open', '/', service, { bypass_auth: true });
    const records = [authRecord, mappingRecord('guarded', '/admin', service), open];
    const configDir = await writeFiles({ 'services/x.yaml': yamlOf(...records) });
    const outcomeOf = async (strictPaths: boolean) => {
      const options = { method: 'GET', url: '/ADMIN', header: [], json: true };
      const explained = JSON.parse(
        (await explainOnce(requireSettings(settingTable, { configDir, strictPaths }), options)).text,
      );
      assert.equal(explained.mapping.name, 'open');
      return explained.outcome;
    };
    const { problem, detail } = await outcomeOf(true);
    assert.equal(problem, 'bad-path');
    assert.match(detail, /could read it as \/ADMIN, a path of Mapping guarded\.$/);
    assert.equal((await outcomeOf(false)).kind, 'forwarded');
  });

  async function explain(options: Partial<ExplainOptions>, configDir = './config') {
    return explainOnce(requireSettings(settingTable, { configDir }), {
      method: 'GET',
      url: '/v1/hotels',
      header: [],
      ...options,
    });
  }

  it('rejects a broken configuration with file, line and remedy', async () => {
    const record = 'apiVersion: gateway/v1\nkind: Mapping\nname: rooms\nprefx: /v1/rooms\nservice: hotel\n';
    const directory = await writeFiles({ 'services/rooms.yaml': record });
    await assert.rejects(explain({}, directory), /configuration has an error:\n.*rooms\.yaml:4.*prefx/s);
  });

  it('explains why a request is invalid', async () => {
    await assert.rejects(
      explain({ url: 'v1', header: ['no colon'] }),
      /url must be a path .*; header "no" is not a valid/s,
    );
    await assert.rejects(explain({ url: 'v1/hotels' }), /url must be a path such as \/v1\/orders/);
    await assert.rejects(explain({ header: ['X-Plan'] }), /write it as "Name: value"/);
    await assert.rejects(explain({ from: 'localhost' }), /from must be an IP address, such as/);
  });

  it('sends nothing, not even a health check', async () => {
    let requests = 0;
    const { port } = await servers.http((_req, res) => {
      requests += 1;
      res.end();
    });
    const record = [
      'apiVersion: gateway/v1',
      'kind: Mapping',
      'name: far',
      'prefix: /far',
      `service: 127.0.0.1:${port}`,
      'health_checks: { interval: 1ms, health_check: { http: { path: /health } } }',
      '',
    ];
    const directory = await writeFiles({ 'services/far.yaml': record.join('\n') });
    const { text } = await explain({ url: '/far/x', only: ['gateway'] }, directory);
    assert.match(text, new RegExp(`where +http://127\\.0\\.0\\.1:${port}$`, 'm'));
    assert.match(text, /health +\/health every/);
    assert.equal(requests, 0);
  });

  it('replaces control characters that a terminal would interpret', async () => {
    const { text } = await explain({ user: 'a\u001b[2Jb' });
    assert.ok(text.includes('by a\ufffd[2Jb') && !text.includes('\u001b'));
  });
});
