/** `frontdesk explain` as a user meets it, and what it needs of a configuration. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { requireSettings } from '#config';
import { type ExplainOptions, explainOnce } from '../../src/cli/explain.ts';
import { runsTogether } from '../support/programs/frontdesk-process.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';

const readme = readFileSync(new URL('../../src/explain/README.md', import.meta.url), 'utf8');

/** The command after the prompt, split as a shell would, and what the README says that it prints. */
function shownRun(): { args: readonly string[]; output: string } {
  const [, line = '', output = ''] =
    /^```console\n\$ npx frontdesk (explain .*)\n((?:(?!```).*\n)*)```$/m.exec(readme) ?? [];
  const args = [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? '');
  return { args, output };
}

describe('frontdesk explain', () => {
  const run = runsTogether();
  const writeFiles = temporaryFiles();
  const servers = testServers();

  const shown = shownRun();
  const asShown = run(shown.args);
  const refused = run(['explain', 'get', '/v1/..%2fx', '--json']);

  it("prints what the README shows, by the README's own command", () => {
    const { code, stdout, stderr } = asShown();
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    assert.ok(shown.output.length > 100);
    assert.equal(stdout, shown.output);
  });

  it('ends with 1 and says why when a request is refused before a mapping is looked for', () => {
    const { code, stdout, stderr } = refused();
    assert.equal(code, 1);
    assert.equal(JSON.parse(stdout).outcome.problem, 'bad-path');
    assert.match(stderr, /^frontdesk: the request is refused before a mapping is looked for: .*\n$/);
  });

  it('predicts what STRICT_PATHS refuses, and why', async () => {
    const asked = { method: 'GET', url: '/v1;x=1/hotels', header: [], json: true };
    const strict = await explainOnce(requireSettings({ configDir: './config', strictPaths: true }), asked);
    const { request, mapping, outcome } = JSON.parse(strict.text);
    assert.deepEqual([request.path, mapping, outcome.status, outcome.problem], [undefined, undefined, 400, 'bad-path']);
    assert.match(strict.refusal ?? '', /it has a path parameter/);
    const { text, refusal } = await explainOnce(requireSettings({ configDir: './config' }), asked);
    assert.deepEqual([JSON.parse(text).outcome.status, refusal], [404, undefined]);
  });

  async function explain(asked: Partial<ExplainOptions>, configDir = './config') {
    return explainOnce(requireSettings({ configDir }), { method: 'GET', url: '/v1/hotels', header: [], ...asked });
  }

  it('refuses a broken configuration with file, line and remedy', async () => {
    const record = 'apiVersion: gateway/v1\nkind: Mapping\nname: rooms\nprefx: /v1/rooms\nservice: hotel\n';
    const directory = await writeFiles({ 'services/rooms.yaml': record });
    await assert.rejects(explain({}, directory), /configuration has errors:\n.*rooms\.yaml:4.*prefx/s);
  });

  it('says of a request that no client could send what is wrong with it', async () => {
    await assert.rejects(explain({ url: 'v1', header: ['no colon'] }), /url is neither .*; header "no colon /s);
  });

  it('sends nothing, not even a health check', async () => {
    let asked = 0;
    const { port } = await servers.http((_req, res) => {
      asked += 1;
      res.end();
    });
    const record = [
      ...['apiVersion: gateway/v1', 'kind: Mapping', 'name: far', 'prefix: /far', `service: 127.0.0.1:${port}`],
      ...['health_checks: { interval: 1ms, health_check: { http: { path: /health } } }', ''],
    ];
    const directory = await writeFiles({ 'services/far.yaml': record.join('\n') });
    const { text } = await explain({ url: '/far/x', only: ['gateway'] }, directory);
    assert.match(text, new RegExp(`where +http://127\\.0\\.0\\.1:${port}$`, 'm'));
    assert.match(text, /health +\/health every/);
    assert.equal(asked, 0);
  });

  it('replaces control characters that a terminal would obey', async () => {
    const { text } = await explain({ user: 'a\u001b[2Jb' });
    assert.ok(text.includes('by a\ufffd[2Jb') && !text.includes('\u001b'));
  });
});
