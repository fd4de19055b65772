/** An identity provider: oidc-provider, with a login form that accepts every name, and access tokens that are JWTs. */
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { mock } from 'node:test';
import type { Configuration, KoaContextWithOIDC } from 'oidc-provider';
import type { TestServers } from './serve.ts';
import { createKey } from './tokens.ts';

/** An application that signs users in. It may also get a token for itself. */
export interface Client {
  readonly id: string;
  readonly secret: string;
  /** Where the provider sends a browser after the login. */
  readonly redirectUri: string;
}

export interface IdentityProvider {
  readonly issuer: string;
  /** Issues a token to the client itself, for the API of this name with this scope. */
  readonly issueToken: (audience: string, scope: string) => Promise<string>;
}

type Handler = (req: IncomingMessage, res: ServerResponse) => unknown;

export async function startIdentityProvider(servers: TestServers, client: Client): Promise<IdentityProvider> {
  let handle: Handler = () => {};
  const { origin } = await servers.http((req, res) => void handle(req, res));
  const { default: Provider } = await import('oidc-provider');
  // It warns that it keeps its sessions in memory.
  const warning = mock.method(console, 'warn', () => {}).mock;
  const provider = new Provider(origin, configurationFor(client));
  warning.restore();
  const serveOthers = provider.callback();

  /** Its login form. Any path below /login belongs to one login. */
  async function serveLogin(req: IncomingMessage, res: ServerResponse): Promise<void> {
    if (req.method === 'POST') {
      const accountId = new URLSearchParams(await text(req)).get('name') ?? '';
      return provider.interactionFinished(req, res, { login: { accountId } });
    }
    res.setHeader('Content-Type', 'text/html');
    res.end(page('Log in', '<form method=post><input name=name aria-label=Name><button>Log in</button></form>'));
  }

  handle = (req, res) => (req.url?.startsWith('/login/') ? serveLogin(req, res) : serveOthers(req, res));

  return {
    issuer: origin,
    async issueToken(resource, scope) {
      const credentials = Buffer.from(`${client.id}:${client.secret}`).toString('base64');
      const answer = await fetch(`${origin}/token`, {
        method: 'POST',
        headers: { Authorization: `Basic ${credentials}` },
        body: new URLSearchParams({ grant_type: 'client_credentials', resource, scope }),
        signal: AbortSignal.timeout(10_000),
      });
      const { access_token: token } = (await answer.json()) as { readonly access_token?: string };
      if (token === undefined) throw new Error(`the provider issued no token: ${answer.status}`);
      return token;
    },
  };
}

function configurationFor({ id, secret, redirectUri }: Client): Configuration {
  const { privateKey } = createKey('RS256');
  return {
    clients: [
      {
        client_id: id,
        client_secret: secret,
        redirect_uris: [redirectUri],
        grant_types: ['authorization_code', 'client_credentials'],
      },
    ],
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid: 'first', use: 'sig', alg: 'RS256' }] },
    cookies: { keys: [randomBytes(16).toString('hex')] },
    ttl: { AccessToken: 600, ClientCredentials: 600, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 },
    interactions: { url: (_ctx, { uid }) => `/login/${uid}` },
    claims: { email: ['email', 'email_verified'], profile: ['name'] },
    findAccount: (_ctx, accountId) => ({
      accountId,
      claims: () => ({ sub: accountId, email: `${accountId}@example.com`, email_verified: true }),
    }),
    loadExistingGrant: grantAll,
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_ctx, name) => ({
          audience: name,
          scope: 'orders:read orders:write',
          accessTokenFormat: 'jwt',
        }),
      },
      rpInitiatedLogout: {
        enabled: true,
        logoutSource: (ctx, form) => {
          ctx.body = page('Log out', `${form}<button form=op.logoutForm name=logout value=yes>Log out</button>`);
        },
        postLogoutSuccessSource: (ctx) => {
          ctx.body = page('Logged out', '');
        },
      },
    },
  };
}

/** Does not ask the user whether the application may know the name. */
async function grantAll({ oidc }: KoaContextWithOIDC) {
  const grant = new oidc.provider.Grant({ accountId: oidc.session?.accountId, clientId: oidc.client?.clientId });
  grant.addOIDCScope('openid email profile');
  await grant.save();
  return grant;
}

function page(title: string, body: string): string {
  return `<!DOCTYPE html><html lang=en><title>${title}</title><h1>${title}</h1>${body}`;
}
