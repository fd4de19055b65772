/** API keys at a whole server: who may pass, what services and limits are told, and what is shown of a key. */
import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import type { Middleware } from 'koa';
import request from 'supertest';
import { createApiKey } from '#auth';
import { formatExplanation } from '#explain';
import type { AuthServiceInput, Frontdesk, FrontdeskOptions, MappingInput, UserInput } from '../../src/index.ts';
import { annRecord, authRecord, call, desksOf, limitRecord, mappingRecord } from '../support/desks.ts';
import { type LogLine, recordingLogger } from '../support/edge.ts';
import { runCommand } from '../support/programs/command.ts';
import { testServers } from '../support/serve.ts';
import { replaceFile, temporaryFiles, yamlOf } from '../support/temporary-files.ts';
import { claimsOf, createKey, providerRecord, signToken } from '../support/tokens.ts';
import { createLogWatcher } from '../support/waiting.ts';

const { key, sha256 } = createApiKey();
const bot: UserInput = { name: 'bot', roles: ['admin'], api_keys: [{ name: 'ci', sha256 }] };

/** Responds with what it received of the credentials. */
const echo: Middleware = (ctx) => {
  const { 'x-travel-user': user, 'x-api-key-name': name, 'x-api-key': sent, 'x-other': other } = ctx.req.headers;
  const spelled = ctx.req.rawHeaders.filter(
    (_, index) => index % 2 === 0 && /^x-api-key$/i.test(ctx.req.rawHeaders[index] ?? ''),
  );
  ctx.body = { user, name, sent, other, spelled: spelled.length };
};

describe('API keys at a server', () => {
  const servers = testServers();
  const openDesk = desksOf(servers);
  const writeFiles = temporaryFiles();

  interface Records {
    readonly mappings?: readonly MappingInput[];
    readonly auth?: Partial<AuthServiceInput>;
    readonly users?: readonly UserInput[];
    readonly limits?: NonNullable<Extract<FrontdeskOptions['config'], object>>['limits'];
  }

  const configOf = ({
    mappings = [mappingRecord('app', '/', 'app'), mappingRecord('open', '/open', 'app', { bypass_auth: true })],
    auth,
    users = [annRecord, bot],
    limits = [],
  }: Records) => ({
    records: [...mappings, { ...authRecord, ...auth }, ...(limits.length > 0 ? [limitRecord] : [])],
    users,
    limits,
  });

  const open = (records: Records = {}, options: FrontdeskOptions = {}) =>
    openDesk({ config: configOf(records), services: { app: echo }, demo: false, ...options });

  it('let a request through with the names of the user and the key, and without the key', async () => {
    const desk = await open();
    const { body } = await call(desk, '/').set('X-Api-Key', key).expect(200);
    assert.deepEqual(body, { user: 'bot', name: 'ci', spelled: 0 });
    await call(desk, '/gateway/v0/explain?url=/').set('X-Api-Key', key).expect(200);
  });

  for (const [what, sent] of [
    ['wrong', createApiKey().key],
    ['empty', ''],
    ['too long', 'k'.repeat(513)],
    ['sent twice', `${key}, ${key}`],
    ['the digest', sha256],
  ] as const)
    it(`get 401 with a challenge for passwords if one is ${what}, even with the right password`, async () => {
      const desk = await open();
      const { headers, text } = await call(desk, '/').set('X-Api-Key', sent).auth('ann', 'secret').expect(401);
      assert.equal(headers['www-authenticate'], 'Basic realm="api", charset="UTF-8"');
      assert.ok(sent === '' || !text.includes(sent));
    });

  it('decide before passwords, and leave requests without a key to them', async () => {
    const desk = await open();
    assert.equal((await call(desk, '/').set('X-Api-Key', key).auth('ann', 'wrong').expect(200)).body.user, 'bot');
    assert.deepEqual((await call(desk, '/').auth('ann', 'secret').expect(200)).body, { user: 'ann', spelled: 0 });
    await call(desk, '/').auth('bot', key).expect(401);
  });

  it('are one of three kinds of credentials on the same mapping, of which a token decides first', async () => {
    const signingKey = createKey('EdDSA', 'ed');
    const token = `Bearer ${signToken(signingKey, claimsOf())}`;
    const { records, ...rest } = configOf({ auth: { providers: ['accounts'] } });
    const config = { ...rest, records: [...records, providerRecord([signingKey])] };
    const desk = await openDesk({ config, services: { app: echo }, demo: false });
    const ask = (headers: Readonly<Record<string, string>>) => call(desk, '/').set(headers);
    const password = `Basic ${Buffer.from('ann:secret').toString('base64')}`;
    assert.equal((await ask({ Authorization: token }).expect(200)).body.user, 'ann');
    assert.equal((await ask({ 'X-Api-Key': key }).expect(200)).body.user, 'bot');
    assert.equal((await ask({ Authorization: password }).expect(200)).body.user, 'ann');
    const { body } = await ask({ Authorization: token, 'X-Api-Key': key }).expect(200);
    assert.deepEqual(body, { user: 'ann', spelled: 0 });
    await ask({ Authorization: 'Bearer nonsense', 'X-Api-Key': key }).expect(401);
    const { headers } = await ask({ Authorization: password, 'X-Api-Key': 'guess' }).expect(401);
    assert.equal(headers['www-authenticate'], 'Bearer realm="api", Basic realm="api", charset="UTF-8"');
  });

  it('are left alone where they are not accepted, because a service may have keys of its own', async () => {
    const desk = await open();
    assert.deepEqual((await call(desk, '/open').set('X-Api-Key', 'own').expect(200)).body, { sent: 'own', spelled: 1 });
    for (const records of [{ users: [annRecord] }, { auth: { api_key_header: '' } }]) {
      const without = await open(records);
      const { body } = await call(without, '/').set('X-Api-Key', 'own').auth('ann', 'secret').expect(200);
      assert.deepEqual(body, { user: 'ann', sent: 'own', spelled: 1 });
      await call(without, '/').set('X-Api-Key', key).expect(401);
    }
  });

  it('are read from the header that the record names, and from no other', async () => {
    const desk = await open({ auth: { api_key_header: 'X-Other' } });
    const { body } = await call(desk, '/').set('X-Other', key).set('X-Api-Key', 'own').expect(200);
    assert.deepEqual(body, { user: 'bot', name: 'ci', sent: 'own', spelled: 1 });
    await call(desk, '/').set('X-Api-Key', key).expect(401);
  });

  it('give a name that no client can forge', async () => {
    for (const records of [{}, { users: [annRecord] }, { auth: { api_key_header: '' } }]) {
      const desk = await open(records);
      for (const path of ['/', '/open']) {
        const { body } = await call(desk, path).set('X-Api-Key-Name', 'root').auth('ann', 'secret').expect(200);
        assert.equal(body.name, undefined);
      }
    }
  });

  it('are checked by an auth service in another process, which the gateway sends them to', async () => {
    const auth = await open({}, { only: ['auth'], host: '127.0.0.1' });
    const { url } = (await auth.listen()).auth;
    const desk = await open({}, { only: ['gateway'], serviceAddresses: { auth: new URL(url).host } });
    const { body } = await call(desk, '/').set('X-Api-Key', key).expect(200);
    assert.deepEqual(body, { user: 'bot', name: 'ci', spelled: 0 });
    await call(desk, '/').set('X-Api-Key', createApiKey().key).expect(401);
  });

  it('are accepted and refused as soon as users.yaml changes', async () => {
    const config = await writeFiles({
      'services/all.yaml': yamlOf(mappingRecord('app', '/', 'app'), authRecord),
      'users.yaml': yamlOf({ users: [annRecord] }),
    });
    const log = createLogWatcher();
    const desk = await openDesk({ config, services: { app: echo }, demo: false, logger: log.logger });
    await call(desk, '/').set('X-Api-Key', key).expect(401);
    const added = await runCommand(['users', 'add-key', 'ann'], { env: { CONFIG_DIR: config } });
    const own = added.stdout.trim();
    await log.waitFor('configuration reloaded');
    const { body } = await call(desk, '/').set('X-Api-Key', own).expect(200);
    assert.deepEqual(body, { user: 'ann', name: 'key-1', spelled: 0 });
    await replaceFile(join(config, 'users.yaml'), yamlOf({ users: [annRecord] }));
    await log.waitFor('configuration reloaded');
    await call(desk, '/').set('X-Api-Key', own).expect(401);
  });

  it('count in limits by name, and in limits by their header by a digest', async () => {
    const labels = { gateway: [{ by_key: [{ key: { header: 'X-Api-Key' } }] }] };
    const byName = { gateway: [{ by_name: [{ name: { header: 'X-Api-Key-Name' } }] }] };
    const rate_limit = { unit: 'hour' as const, requests_per_unit: 1 };
    const other = createApiKey();
    const desk = await open({
      mappings: [
        mappingRecord('app', '/by-key', 'app', { labels }),
        mappingRecord('named', '/by-name', 'app', { labels: byName }),
      ],
      users: [
        {
          ...bot,
          api_keys: [
            { name: 'ci', sha256 },
            { name: 'other', sha256: other.sha256 },
          ],
        },
      ],
      limits: [
        {
          domain: 'gateway',
          descriptors: [
            { key: 'key', rate_limit },
            { key: 'name', rate_limit },
          ],
        },
      ],
    });
    for (const path of ['/by-key', '/by-name']) {
      await call(desk, path).set('X-Api-Key', key).expect(200);
      await call(desk, path).set('X-Api-Key', key).expect(429);
      await call(desk, path).set('X-Api-Key', other.key).expect(200);
    }
    const { rate_limit: explained } = await desk.explain({
      method: 'GET',
      url: '/by-key',
      headers: [['X-Api-Key', key]],
    });
    assert.match(JSON.stringify(explained), /"sha256:[0-9a-f]{16}"/);
    assert.ok(!JSON.stringify(explained).includes(key));
  });

  describe('that are guessed', () => {
    /** Trusts loopback as a proxy, so that a test can send requests from any address. */
    const openTrusting = () => open({}, { trustedProxies: ['127.0.0.1', '::ffff:127.0.0.1'], adminPort: 0 });
    const from = (desk: Frontdesk, address: string) => (sent: string) => {
      const listener: RequestListener = desk.app.callback();
      return request(listener).get('/').set('X-Forwarded-For', address).set('X-Api-Key', sent);
    };

    it('are throttled by address, and a key that was right before is not', async () => {
      const desk = await openTrusting();
      const [guesser, other] = [from(desk, '203.0.113.7'), from(desk, '198.51.100.9')];
      await guesser(key).expect(200);
      const statuses: number[] = [];
      for (let guess = 0; guess < 33; guess += 1) statuses.push((await guesser(`guess ${guess}`)).status);
      assert.deepEqual(statuses, [...Array(31).fill(401), 429, 429]);
      const { body, headers } = await guesser('guess').expect(429);
      assert.match(String(headers['retry-after']), /^[1-9]\d*$/);
      assert.match(body.info_url, /login-throttled$/);
      await guesser(key).expect(200);
      await other(createApiKey().key).expect(401);
      const { text } = await request((await desk.listen()).admin.url).get('/metrics');
      for (const [result, count] of [
        ['right', 1],
        ['wrong', 32],
        ['throttled', 3],
      ] as const)
        assert.ok(text.includes(`frontdesk_auth_logins_total{result="${result}"} ${count}\n`), result);
    });

    it('one after the other are throttled by the key after a few requests', async () => {
      const desk = await openTrusting();
      const program = from(desk, '203.0.113.7');
      for (let attempt = 0; attempt < 11; attempt += 1) await program('old key').expect(401);
      await program('old key').expect(429);
      await program(key).expect(200);
    });
  });

  it('are explained and never shown, logged or part of an error', async () => {
    const lines: LogLine[] = [];
    const desk = await open({}, { logger: recordingLogger(lines) });
    const decisionOn = async (sent?: string) => {
      const headers = sent === undefined ? [] : ([['X-Api-Key', sent]] as const);
      const explanation = await desk.explain({ method: 'GET', url: '/', headers });
      assert.ok(explanation.auth?.asked);
      assert.ok(sent === undefined || !JSON.stringify(explanation).includes(sent));
      assert.match(formatExplanation(explanation), /^ {2}API keys +in the header x-api-key, which is then removed$/m);
      return `${explanation.auth.decision}: ${explanation.auth.decision_reason}`;
    };
    const wrong = createApiKey().key;
    assert.equal(await decisionOn(key), 'allowed: the credentials are those of bot');
    assert.equal(await decisionOn(wrong), 'denied: the API key belongs to no user');
    assert.equal(await decisionOn(), 'denied: the request has no credentials');
    const page = await call(desk, `/gateway/v0/explain?url=/&header=X-Api-Key:${wrong}`)
      .set('X-Api-Key', key)
      .set('Accept', 'text/html')
      .expect(200);
    assert.ok(!page.text.includes(wrong));
    await call(desk, '/').set('X-Api-Key', wrong).expect(401);
    const log = JSON.stringify(lines);
    assert.match(log, /"user":"bot","apiKey":"ci"/);
    for (const secret of [key, wrong, sha256]) assert.ok(!log.includes(secret));
  });

  it('are listed by check with the header of each route', async () => {
    const directory = await writeFiles({
      'config/services/all.yaml': yamlOf(
        mappingRecord('app', '/', 'http://127.0.0.1:3000'),
        mappingRecord('open', '/open', 'http://127.0.0.1:3000', { bypass_auth: true }),
        authRecord,
      ),
      'config/users.yaml': yamlOf({ users: [bot] }),
    });
    const { stdout } = await runCommand(['check'], { cwd: directory });
    assert.match(stdout, /^\/ .*auth auth, keys in x-api-key /m);
    assert.match(stdout, /^\/open .*open /m);
    assert.ok(!stdout.includes(sha256));
  });
});
