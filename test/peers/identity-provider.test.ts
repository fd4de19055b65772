/** Access tokens of a real identity provider, whose keys the gateway reads from where the provider says. */
import assert from 'node:assert/strict';
import type { Middleware } from 'koa';
import { authRecord, call, desksOf, mappingRecord, type TestDesk } from '../support/desks.ts';
import { type IdentityProvider, startIdentityProvider } from '../support/identity-provider.ts';
import { testServers } from '../support/serve.ts';
import { audience, providerRecord } from '../support/tokens.ts';

/** Responds with the identity headers that it received. */
const echo: Middleware = (ctx) => {
  const { 'x-travel-user': user, 'x-scope': scope } = ctx.req.headers;
  ctx.body = { user, scope };
};

describe('access tokens of oidc-provider', () => {
  const servers = testServers(after);
  const openDesk = desksOf(servers);
  let provider: IdentityProvider;
  let desk: TestDesk;

  before(async () => {
    const client = { id: 'planner', secret: 'secret', redirectUri: 'https://planner.example.com/callback' };
    provider = await startIdentityProvider(servers, client);
    const { issuer } = provider;
    const discovery = await fetch(`${issuer}/.well-known/openid-configuration`, {
      signal: AbortSignal.timeout(10_000),
    });
    const { jwks_uri } = (await discovery.json()) as { readonly jwks_uri: string };
    const accounts = providerRecord([], {
      issuer,
      jwks_uri,
      claim_to_headers: [{ claim: 'scope', header: 'X-Scope' }],
    });
    const records = [
      mappingRecord('app', '/', 'app'),
      mappingRecord('orders', '/orders', 'app', { require_claims: { scope: 'orders:write' } }),
      { ...authRecord, providers: ['accounts'] },
      accounts,
    ];
    desk = await openDesk({ config: { records }, services: { app: echo }, demo: false });
  });

  const ask = async (path: string, token: string) => call(desk, path).set('Authorization', `Bearer ${token}`);

  it('let their client in, and its name and scope reach the service', async () => {
    const { status, body } = await ask('/', await provider.issueToken(audience, 'orders:read'));
    assert.deepEqual([status, body], [200, { user: 'planner', scope: 'orders:read' }]);
  });

  it('reach a mapping that requires a scope only with this scope', async () => {
    const reading = await ask('/orders', await provider.issueToken(audience, 'orders:read'));
    assert.equal(reading.status, 403);
    assert.match(String(reading.headers['www-authenticate']), /error="insufficient_scope"/);
    assert.equal((await ask('/orders', await provider.issueToken(audience, 'orders:read orders:write'))).status, 200);
  });

  it('are rejected if they are for another API, or changed', async () => {
    const token = await provider.issueToken(audience, 'orders:read');
    const [header, claims = '', signature] = token.split('.');
    const forged = JSON.stringify({ ...JSON.parse(atob(claims)), scope: 'orders:write' });
    for (const wrong of [
      await provider.issueToken('https://other.example.com', 'orders:read'),
      [header, Buffer.from(forged).toString('base64url'), signature].join('.'),
    ]) {
      const { status, headers } = await ask('/', wrong);
      assert.equal(status, 401);
      assert.match(String(headers['www-authenticate']), /error="invalid_token"/);
    }
  });
});
