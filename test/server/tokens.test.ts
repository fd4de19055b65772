/** Tokens of an identity provider at a whole server: who may pass, what services are told, and what is shown of it. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { Middleware } from 'koa';
import request from 'supertest';
import type { Diagnostics } from '#diag';
import { formatExplanation } from '#explain';
import type { AuthServiceInput, Frontdesk, FrontdeskOptions, JwtProviderInput, MappingInput } from '../../src/index.ts';
import { annRecord, authRecord, call, desksOf, limitRecord, mappingRecord } from '../support/desks.ts';
import { type LogLine, recordingLogger } from '../support/edge.ts';
import { runCommand } from '../support/programs/command.ts';
import { testServers } from '../support/serve.ts';
import { replaceFile, temporaryFiles, yamlOf } from '../support/temporary-files.ts';
import { claimsOf, createKey, providerRecord, signToken, startKeyServer } from '../support/tokens.ts';
import { createLogWatcher } from '../support/waiting.ts';

const key = createKey('EdDSA', 'ed');
const token = (more: Readonly<Record<string, unknown>> = {}) => signToken(key, claimsOf(more));
const bearer = (more?: Readonly<Record<string, unknown>>) => `Bearer ${token(more)}`;

const basicChallenge = 'Basic realm="api", charset="UTF-8"';
const challenges = (error = '') => `Bearer realm="api"${error}, ${basicChallenge}`;

/** Responds with the identity headers that it received. */
const echo: Middleware = (ctx) => {
  const { 'x-travel-user': user, 'x-email': email, authorization } = ctx.req.headers;
  ctx.body = { user, email, kind: authorization?.split(' ')[0] };
};

describe('tokens at a server', () => {
  const servers = testServers();
  const openDesk = desksOf(servers);
  const writeFiles = temporaryFiles();

  const accounts = (more: Partial<JwtProviderInput> = {}) =>
    providerRecord([key], { claim_to_headers: [{ claim: 'email', header: 'X-Email' }], ...more });
  const withTokens: AuthServiceInput = { ...authRecord, providers: ['accounts'] };

  interface Records {
    readonly mappings?: readonly MappingInput[];
    readonly auth?: Partial<AuthServiceInput>;
    readonly provider?: Partial<JwtProviderInput>;
    readonly others?: NonNullable<Extract<FrontdeskOptions['config'], object>>['records'];
    readonly limits?: NonNullable<Extract<FrontdeskOptions['config'], object>>['limits'];
  }

  const configOf = ({
    mappings = [mappingRecord('app', '/', 'app')],
    auth,
    provider,
    others = [],
    limits = [],
  }: Records) => ({
    records: [...mappings, { ...withTokens, ...auth }, accounts(provider), ...others],
    users: [annRecord],
    limits,
  });

  const open = (records: Records = {}, options: FrontdeskOptions = {}) =>
    openDesk({ config: configOf(records), services: { app: echo }, demo: false, ...options });

  it('let a request through with the user and the claims in headers, and forward the token', async () => {
    const desk = await open();
    const { body } = await call(desk, '/')
      .set('Authorization', bearer({ email: 'ann@example.com' }))
      .expect(200);
    assert.deepEqual(body, { user: 'ann', email: 'ann@example.com', kind: 'Bearer' });
  });

  it('set headers that no client can set, on any route and with any credentials', async () => {
    const desk = await open({
      mappings: [mappingRecord('app', '/', 'app'), mappingRecord('open', '/open', 'app', { bypass_auth: true })],
    });
    const forged = { 'X-Email': 'root@example.com', 'X-Travel-User': 'root' };
    const ask = (path: string) => call(desk, path).set(forged);
    assert.deepEqual((await ask('/open').expect(200)).body, {});
    assert.deepEqual((await ask('/').auth('ann', 'secret').expect(200)).body, { user: 'ann', kind: 'Basic' });
    assert.deepEqual((await ask('/').set('Authorization', bearer()).expect(200)).body, { user: 'ann', kind: 'Bearer' });
    await call(desk, '/').set('Authorization', bearer()).set('Connection', 'X-Email').expect(400);
  });

  it('are asked for in a 401 besides passwords, with an error only if there was a token', async () => {
    const desk = await open();
    const expired = claimsOf({ exp: 1 });
    for (const [authorization, challenge] of [
      [undefined, challenges()],
      ['Basic YW5uOmd1ZXNz', challenges()],
      ['Bearer nonsense', challenges(', error="invalid_token", error_description="The token is not valid"')],
      [
        `Bearer ${signToken(key, expired)}`,
        challenges(', error="invalid_token", error_description="The token has expired"'),
      ],
    ] as const) {
      const asked = authorization === undefined ? call(desk, '/') : call(desk, '/').set('Authorization', authorization);
      const { headers, body } = await asked.expect(401);
      assert.equal(headers['www-authenticate'], challenge);
      assert.match(body.info_url, /unauthorized$/);
    }
  });

  it('keep the 401 without a word of tokens if the AuthService has no providers', async () => {
    const desk = await open({ auth: { providers: [] } });
    for (const authorization of ['', bearer()])
      await call(desk, '/').set('Authorization', authorization).expect(401).expect('WWW-Authenticate', basicChallenge);
  });

  it('get 503 while there are no keys to check them with, and passwords still work', async () => {
    const server = await startKeyServer(servers);
    server.breakOff();
    const desk = await open({ provider: { jwks_uri: server.uri } });
    const { body } = await call(desk, '/').set('Authorization', bearer()).expect(503);
    assert.match(body.info_url, /auth-unavailable$/);
    await call(desk, '/').auth('ann', 'secret').expect(200);
  });

  describe('with require_claims', () => {
    const requiring = (require_claims: MappingInput['require_claims'], auth: Partial<AuthServiceInput> = {}) =>
      open({ mappings: [mappingRecord('app', '/', 'app', { require_claims })], auth });

    for (const [what, required, claims, status] of [
      ['an equal value', { scope: 'orders' }, { scope: 'orders' }, 200],
      ['a word of a text', { scope: 'orders' }, { scope: 'openid orders email' }, 200],
      ['a part of a word', { scope: 'orders' }, { scope: 'orders:read' }, 403],
      ['an item of a list', { scp: 'orders' }, { scp: ['openid', 'orders'] }, 200],
      ['all of several values', { scope: ['orders', 'email'] }, { scope: 'email orders' }, 200],
      ['one of several values', { scope: ['orders', 'email'] }, { scope: 'orders' }, 403],
      ['a claim inside another', { 'realm_access.roles': 'admin' }, { realm_access: { roles: ['admin'] } }, 200],
      ['a flag', { email_verified: true }, { email_verified: true }, 200],
      ['a flag as text', { email_verified: true }, { email_verified: 'true' }, 403],
      ['a number', { level: 3 }, { level: 3 }, 200],
      ['one of two claims', { scope: 'orders', level: 3 }, { scope: 'orders' }, 403],
      ['no claim', { scope: 'orders' }, {}, 403],
      ['a name that every object has', { constructor: 'Object' }, {}, 403],
    ] as const)
      it(`${status === 200 ? 'let a token pass' : 'reject a token'} with ${what}`, async () => {
        const desk = await requiring(required);
        await call(desk, '/').set('Authorization', bearer(claims)).expect(status);
      });

    it('say in the 403 that the scope is insufficient, also to a user with a password', async () => {
      const desk = await requiring({ scope: 'orders' });
      for (const authorization of [bearer({ scope: 'email' }), 'Basic YW5uOnNlY3JldA==']) {
        const { headers, body } = await call(desk, '/').set('Authorization', authorization).expect(403);
        assert.equal(headers['www-authenticate'], 'Bearer realm="api", error="insufficient_scope"');
        assert.match(body.info_url, /insufficient-claims$/);
      }
      await call(desk, '/').expect(401);
    });

    it('reject requests that failure_mode_allow would let through without an identity', async () => {
      const server = await startKeyServer(servers);
      server.breakOff();
      const desk = await open({
        mappings: [
          mappingRecord('app', '/', 'app'),
          mappingRecord('orders', '/orders', 'app', { require_claims: { scope: 'orders' } }),
        ],
        auth: { failure_mode_allow: true },
        provider: { jwks_uri: server.uri },
      });
      assert.deepEqual((await call(desk, '/').set('Authorization', bearer()).expect(200)).body, { kind: 'Bearer' });
      await call(desk, '/orders')
        .set('Authorization', bearer({ scope: 'orders' }))
        .expect(503);
    });

    it('protect a path against other spellings of it', async () => {
      const desk = await open({
        mappings: [
          mappingRecord('app', '/', 'app'),
          mappingRecord('admin', '/admin', 'app', { require_claims: { scope: 'admin' } }),
        ],
      });
      const ask = (path: string) => call(desk, path).set('Authorization', bearer());
      await ask('/other').expect(200);
      await ask('/admin').expect(403);
      await ask('/ADMIN').expect(400);
    });
  });

  it('are limited by a claim, through the header that it becomes', async () => {
    const desk = await open({
      mappings: [
        mappingRecord('app', '/', 'app', {
          labels: { gateway: [{ by: [{ email: { header: 'X-Email', omit_if_not_present: true } }] }] },
        }),
      ],
      others: [limitRecord],
      limits: [
        { domain: 'gateway', descriptors: [{ key: 'email', rate_limit: { unit: 'hour', requests_per_unit: 1 } }] },
      ],
    });
    const ask = (email: string) => call(desk, '/').set('Authorization', bearer({ email }));
    await ask('a@example.com').expect(200);
    await ask('a@example.com').expect(429);
    await ask('b@example.com').expect(200);
    await call(desk, '/').auth('ann', 'secret').expect(200);
    await call(desk, '/').auth('ann', 'secret').expect(200);
  });

  it('are checked in the process of the gateway, whether or not that of the auth service responds', async () => {
    const config = configOf({ mappings: [mappingRecord('app', '/', 'app')] });
    const auth = await openDesk({ config, services: { app: echo }, only: ['auth'], demo: false });
    const { port } = (await auth.listen()).auth;
    const options = { config, services: { app: echo }, demo: false, only: ['gateway'] as const };
    const front = await openDesk({ ...options, serviceAddresses: { auth: [`127.0.0.1:${port}`] } });
    const { body } = await call(front, '/')
      .set('Authorization', bearer({ email: 'ann@example.com' }))
      .expect(200);
    assert.deepEqual(body, { user: 'ann', email: 'ann@example.com', kind: 'Bearer' });
    assert.deepEqual((await call(front, '/').auth('ann', 'secret').expect(200)).body, { user: 'ann', kind: 'Basic' });
    const { headers } = await call(front, '/').expect(401);
    assert.equal(headers['www-authenticate'], challenges());
    await auth.close();
    await call(front, '/').set('Authorization', bearer()).expect(200);
    await call(front, '/').auth('ann', 'secret').expect(503);
  });

  it('are accepted by the auth service for other proxies, which get the user and the claims in headers', async () => {
    const desk = await open({}, { only: ['auth'] });
    const { url } = (await desk.listen()).auth;
    const ask = () => request(url).get('/any/path');
    const { headers } = await ask()
      .set('Authorization', bearer({ email: 'ann@example.com' }))
      .expect(200);
    assert.deepEqual([headers['x-travel-user'], headers['x-email']], ['ann', 'ann@example.com']);
    const basic = await ask().auth('ann', 'secret').expect(200);
    assert.deepEqual([basic.headers['x-travel-user'], basic.headers['x-email']], ['ann', undefined]);
    await ask().expect(401).expect('WWW-Authenticate', challenges());
    const minimal = await ask().set('Authorization', 'Bearer x').set('Prefer', 'return=minimal').expect(401);
    assert.match(String(minimal.headers['www-authenticate']), /error="invalid_token"/);
    assert.equal(minimal.text, '');
  });

  it('are read from a cookie or the query if the record says so, and never logged', async () => {
    const lines: LogLine[] = [];
    const places = { from_cookies: ['session'], from_params: ['token'] };
    const desk = await open({ provider: places }, { logger: recordingLogger(lines) });
    const found = token();
    await call(desk, '/').set('Cookie', `session=${found}`).expect(200);
    await call(desk, `/a?token=${found}`).expect(200);
    await call(desk, `/a?token=${found}x`).expect(401);
    assert.equal(lines.filter(({ message }) => message === 'request').length, 3);
    assert.doesNotMatch(JSON.stringify(lines), new RegExp(found.slice(0, 20)));
  });

  it('are rejected as soon as a change of the configuration removes their provider', async () => {
    const services = (auth: AuthServiceInput) => yamlOf(mappingRecord('app', '/', 'app'), auth, accounts());
    const config = await writeFiles({
      'services/all.yaml': services(withTokens),
      'users.yaml': yamlOf({ users: [annRecord] }),
    });
    const log = createLogWatcher();
    const desk = await openDesk({ config, services: { app: echo }, demo: false, logger: log.logger });
    const authorization = bearer();
    await call(desk, '/').set('Authorization', authorization).expect(200);
    await call(desk, '/').set('Authorization', authorization).expect(200);
    await replaceFile(join(config, 'services/all.yaml'), services(authRecord));
    await log.waitFor('configuration reloaded');
    await call(desk, '/').set('Authorization', authorization).expect(401);
  });

  describe('as operators see them', () => {
    async function seen() {
      const server = await startKeyServer(servers, [key]);
      const desk = await open(
        {
          mappings: [mappingRecord('app', '/', 'app', { require_claims: { scope: ['orders', 'email'] } })],
          provider: { jwks_uri: server.uri, from_params: ['token'], from_headers: [{ name: 'X-Token' }] },
        },
        { adminPort: 0, adminUsers: ['operator'] },
      );
      return { server, desk };
    }

    it('are explained: where they are looked for and what they need, without any token', async () => {
      const { desk } = await seen();
      const found = token();
      const explanation = await desk.explain({
        method: 'GET',
        url: `/a?b=c&token=${found}`,
        headers: [['X-Token', found]],
        user: 'ann',
      });
      assert.ok(explanation.auth?.asked);
      assert.deepEqual(explanation.auth.tokens, {
        providers: ['accounts'],
        places: ['the header x-token', 'the query parameter token'],
        headers: ['x-email'],
      });
      assert.equal(explanation.auth.required_claims, 'scope: orders and email');
      assert.equal(explanation.request.url, '/a?b=c&token=…');
      assert.doesNotMatch(JSON.stringify(explanation), new RegExp(found.slice(0, 20)));
      const text = formatExplanation(explanation);
      assert.match(text, /^ {2}tokens +of accounts, in the header x-token, the query parameter token; the service is/m);
      assert.match(text, /^ {2}required +scope: orders and email; others get 403$/m);
    });

    it('are not shown by an explanation of limits that count by the header of a token', async () => {
      const label = { header: 'X-Token', omit_if_not_present: true };
      const desk = await open({
        mappings: [mappingRecord('app', '/', 'app', { labels: { gateway: [{ by: [{ token: label }] }] } })],
        provider: { from_headers: [{ name: 'X-Token' }] },
        others: [limitRecord],
      });
      const found = token();
      const { rate_limit: part } = await desk.explain({ method: 'GET', url: '/', headers: [['X-Token', found]] });
      assert.ok(part?.asked);
      assert.deepEqual(part.descriptors[0]?.entries, [{ key: 'token', value: '…' }]);
    });

    it('are not repeated by the form of an explanation', async () => {
      const { desk } = await seen();
      const found = token();
      const query = new URLSearchParams({ url: `/a?token=${found}`, header: `X-Token: ${found}`, user: 'demo' });
      query.append('header', 'X-Shown: yes');
      const { text } = await call(desk, `/gateway/v0/explain?${query}`)
        .set('Accept', 'text/html')
        .set('X-Token', token({ sub: 'operator' }))
        .expect(200);
      assert.ok(text.includes('value="X-Shown: yes"'));
      assert.ok(!text.includes(found.slice(0, 20)));
    });

    it('are checked by an explanation, which says what is wrong with one', async () => {
      const { desk } = await seen();
      const decisionOn = async (value?: string) => {
        const headers = value === undefined ? [] : ([['X-Token', value]] as const);
        const { auth } = await desk.explain({ method: 'GET', url: '/', headers });
        assert.ok(auth?.asked);
        return `${auth.decision}: ${auth.decision_reason}`;
      };
      const good = token({ scope: 'orders email' });
      assert.equal(await decisionOn(good), 'allowed: the credentials are those of ann');
      assert.equal(await decisionOn(token()), 'denied: the credentials of ann do not have the required claims');
      assert.equal(await decisionOn(token({ aud: 'other' })), 'denied: the token is not valid');
      assert.equal(await decisionOn(token({ exp: 1 })), 'denied: the token has expired');
      assert.equal(await decisionOn(), 'denied: the request has no credentials');
    });

    it('are counted in the metrics and the diagnostics, with the state of the keys and without the query of their URL', async () => {
      const { server, desk } = await seen();
      const ask = (value: string) => call(desk, '/').set('X-Token', value);
      const good = token({ scope: 'orders email' });
      await ask(good).expect(200);
      await ask(good).expect(200);
      await ask(token({ aud: 'other' })).expect(401);
      await ask(signToken(createKey('EdDSA', 'other'), claimsOf())).expect(401);
      await ask(signToken(key, claimsOf({ iss: 'https://else.example.com' }))).expect(401);
      const { url } = (await desk.listen()).admin;
      const { text } = await request(url).get('/metrics').expect(200);
      for (const [labels, value] of [
        ['provider="accounts",result="valid"', 1],
        ['provider="accounts",result="remembered"', 1],
        ['provider="accounts",result="invalid"', 1],
        ['provider="accounts",result="unknown_key"', 1],
        ['provider="",result="invalid"', 1],
      ] as const)
        assert.ok(text.includes(`frontdesk_auth_tokens_total{${labels}} ${value}\n`), labels);
      assert.match(text, /^frontdesk_auth_keys\{provider="accounts"\} 1$/m);
      assert.match(text, /^frontdesk_auth_keys_age_seconds\{provider="accounts"\} \d/m);
      const [row] = (await readDiagnosticsOf(desk)).token_providers;
      assert.deepEqual(
        [row?.name, row?.keys, row?.keys_from, row?.valid, row?.last_rejection],
        ['accounts', 1, `${new URL('/keys', server.uri).href}?…`, 2, 'unexpected "aud" claim value'],
      );
    });

    it('are listed by check, and a provider that no AuthService uses gets a notice', async () => {
      const directory = await writeFiles({
        'config/services/all.yaml': yamlOf(
          mappingRecord('app', '/', 'http://127.0.0.1:3000', { require_claims: { scope: 'orders' } }),
          withTokens,
          providerRecord([], { jwks_uri: 'https://accounts.example.com/keys?token=secret' }),
          providerRecord([key], { name: 'unused', issuer: 'https://unused.example.com' }),
        ),
        'config/users.yaml': yamlOf({ users: [annRecord] }),
      });
      const { stdout, stderr } = await runCommand(['check'], { cwd: directory });
      assert.match(
        stdout,
        /^\/ +-> {2}http:\/\/127\.0\.0\.1:3000 {2}auth auth {2}\(Mapping app.*\n {4}requires {2}scope: orders$/m,
      );
      assert.match(
        stdout,
        /^tokens of https:\/\/accounts\.example\.com {2}keys at https:\/\/accounts\.example\.com\/keys\?…, for AuthService auth {2}\(JwtProvider accounts, /m,
      );
      assert.match(stderr, /JwtProvider unused: no AuthService accepts its tokens/);
      assert.doesNotMatch(stdout + stderr, /secret/);
    });
  });
});

/** As the user `operator`, who is an administrator by ADMIN_USERS. */
async function readDiagnosticsOf(desk: Frontdesk): Promise<Diagnostics> {
  const { body } = await request(desk.app.callback())
    .get('/gateway/v0/diag/')
    .set('X-Token', signToken(key, claimsOf({ sub: 'operator' })))
    .expect(200);
  return body;
}
