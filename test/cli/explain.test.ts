/** `frontdesk explain`: its output, its exit code, and the configurations that it accepts. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { requireSettings } from '#config';
import { settingTable } from '#server/product';
import { type ExplainOptions, explainOnce } from '../../src/cli/explain.ts';
import { authRecord, limitRecord, mappingRecord } from '../support/desks.ts';
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

  const basic = (user: string, password: string) =>
    `Authorization: Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;

  const verdict = (text: string) => text.split('\n')[1]?.trim();

  it('says that a guarded request without credentials is rejected, and where it would go with a user', async () => {
    const { text } = await explain({});
    assert.equal(verdict(text), 'rejected with 401 (unauthorized): the request has no credentials');
    assert.match(text, /^ {2}decision +denied: the request has no credentials; to assume a user: --user NAME$/m);
    assert.doesNotMatch(text, /^Service$/m);
    const { text: signedIn } = await explain({ user: 'demo' });
    assert.equal(verdict(signedIn), 'Mapping hotel sends it to hotel (in this process) as GET /');
  });

  it('checks credentials as the auth service of this process does, and shows none of them', async () => {
    const { text } = await explain({ header: [basic('demo', 'demo')] });
    assert.equal(verdict(text), 'Mapping hotel sends it to hotel (in this process) as GET /');
    assert.match(text, /^GET \/v1\/hotels by demo$/m);
    assert.match(text, /^ {2}decision +allowed: the credentials are those of demo$/m);
    assert.match(text, /^ {2}descriptor +x-travel-user=demo$/m);
    const wrong = [basic('demo', 's3cret'), basic('s3cret', 'demo'), 'Authorization: Bearer s3cret'];
    for (const header of wrong)
      for (const json of [true, false]) {
        const { text } = await explain({ header: [header], json });
        assert.match(text, /no user has these credentials: the name or the password is wrong/);
        assert.ok(!text.includes('s3cret') && !text.includes(header.split(' ').at(-1) ?? ''), text);
      }
  });

  it('takes credentials as curl does, and never prints them', async () => {
    const run = (...args: readonly string[]) => runCommand(['explain', 'GET', '/v1/hotels', ...args]);
    const right = await run('-u', 'demo:demo');
    assert.equal(verdict(right.stdout), 'Mapping hotel sends it to hotel (in this process) as GET /');
    const wrong = await run('-u', 'demo:s3cret', '--json');
    assert.equal(JSON.parse(wrong.stdout).outcome.status, 401);
    const incomplete = await run('-u', 's3cret');
    assert.equal(incomplete.stderr, 'frontdesk: -u has no password: write it as NAME:PASSWORD\n');
    const both = await run('-u', 'demo:s3cret', '--user', 'demo');
    assert.equal(both.code, 1);
    assert.ok(![wrong, incomplete, both].some(({ stdout, stderr }) => (stdout + stderr).includes('s3cret')));
  });

  it('says whether the user may see what is for administrators only', async () => {
    const url = '/gateway/v0/diag/';
    assert.equal(
      verdict((await explain({ url, user: 'guest' })).text),
      'rejected with 403 (admins-only): guest is not an administrator',
    );
    for (const one of [{ user: 'demo' }, { header: [basic('demo', 'demo')] }])
      assert.match(verdict((await explain({ url, ...one })).text) ?? '', /^Mapping diagnostics sends it /);
  });

  it('counts by address before it says that credentials are missing', async () => {
    const labels = { gateway: [{ address: ['remote_address'] }, { user: [{ u: { header: 'X-Travel-User' } }] }] };
    const configDir = await writeFiles({
      'services/x.yaml': yamlOf(authRecord, limitRecord, mappingRecord('app', '/', 'http://localhost:9', { labels })),
      'ratelimit/x.yaml':
        'domain: gateway\ndescriptors:\n  - key: remote_address\n    rate_limit: { unit: hour, requests_per_unit: 7 }\n',
    });
    const { text } = await explain({ url: '/' }, configDir);
    assert.match(text, /descriptor +remote_address=127\.0\.0\.1, before authentication\n +7 per hour/);
    assert.match(
      text,
      /response +with RateLimit-Policy, RateLimit\n +exceeded +the client gets 429 with Retry-After\n/,
    );
    assert.doesNotMatch(text, /descriptor +u=/);
  });

  it('does not ask an auth service of another process, and says so', async () => {
    let requests = 0;
    const { port } = await servers.http((_req, res) => {
      requests += 1;
      res.end();
    });
    const configDir = await writeFiles({
      'services/x.yaml': yamlOf(
        { ...authRecord, auth_service: `127.0.0.1:${port}` },
        mappingRecord('app', '/', 'http://localhost:9'),
      ),
    });
    const header = [basic('demo', 's3cret')];
    const { text } = await explain({ url: '/x', header }, configDir);
    const auth = `http://127.0.0.1:${port}`;
    assert.equal(
      verdict(text),
      `if AuthService auth (${auth}) allows it, Mapping app sends it to http://localhost:9 as GET /x`,
    );
    assert.ok(text.includes(`only ${auth} knows, and it is not asked; to assume a user: --user NAME`));
    assert.equal(
      JSON.parse((await explain({ url: '/x', header, json: true }, configDir)).text).auth.decision,
      'unknown',
    );
    assert.equal(verdict((await explain({ url: '/x', user: 'ann' }, configDir)).text)?.startsWith('Mapping app'), true);
    assert.equal(requests, 0);
  });

  it('replaces control characters that a terminal would interpret', async () => {
    const { text } = await explain({ user: 'a\u001b[2Jb' });
    assert.ok(text.includes('by a\ufffd[2Jb') && !text.includes('\u001b'));
  });
});
