/** What an auth service would be asked about a request, and what its answers lead to, as `explain` tells it. */
import type { Context } from 'koa';
import type { AuthService } from '#config';
import { createIdentity, forwardedHeaders, publicAddress } from '#proxy';
import type { AuthBody } from './auth-body.ts';
import { upstreamRequest } from './auth-over-http.ts';
import type { NamedAuthService } from './auth-services.ts';
import { createPortQuestion } from './authenticate.ts';
import type { Conceal } from './conceal.ts';
import { placeOf } from './explain-match.ts';
import type { AuthPart } from './explanation.ts';
import type { Facts } from './facts.ts';
import { headerPairs } from './header-pairs.ts';
import type { Route } from './route.ts';
import { describeTarget, type Target } from './target.ts';

export interface ExplainAuth {
  /** Before the user is known. */
  readonly explain: (ctx: Context, facts: Facts, route: Route, conceal: Conceal) => AuthPart;
  /** Sets the identity header as the auth service's answer would. */
  readonly identify: (ctx: Context, route: Route, user: string) => void;
}

export interface ExplainAuthParts {
  readonly services: readonly NamedAuthService[];
  readonly resolve: (service: string) => Target;
}

export function createExplainAuth({ services, resolve }: ExplainAuthParts): ExplainAuth {
  const serviceOf = ({ auth }: Route) => services.find(({ record }) => record.name === auth?.name);

  return Object.freeze({
    explain(ctx: Context, facts: Facts, route: Route, conceal: Conceal): AuthPart {
      const service = serviceOf(route);
      if (service === undefined || route.auth === undefined) return { asked: false, reason: whyOpen(route, services) };
      const { record } = service;
      const target = resolve(record.authService);
      const asked =
        service.port === undefined
          ? askedAcross(ctx, route.auth.question(facts, forwardedFor(ctx)), record, target)
          : askedHere(ctx, record);
      return {
        asked: true,
        name: record.name,
        service: record.authService,
        target: describeTarget(target),
        source: placeOf(record.source),
        method: asked.method,
        path: asked.path,
        headers: conceal.headers(asked.headers),
        body: bodyText(record),
        timeout_ms: service.port === undefined ? record.timeoutMs : undefined,
        cache_ms: service.port === undefined && record.includeBody === undefined ? record.cacheMs : 0,
        user_header: record.allowedAuthorizationHeaders[0],
        ...consequences(record),
      };
    },
    identify(ctx: Context, route: Route, user: string) {
      const names = serviceOf(route)?.record.allowedAuthorizationHeaders ?? [];
      const [userHeader] = names;
      if (userHeader !== undefined) createIdentity(names).set(ctx.req.headers, { [userHeader]: user });
    },
  });
}

function whyOpen({ mapping, redirection, source }: Route, services: readonly NamedAuthService[]): string {
  if (redirection !== undefined) return 'a redirect asks nobody';
  if (services.length === 0) return 'there is no AuthService record';
  if (source === undefined) return 'this route of the server is open to everybody';
  return mapping.bypassAuth ? 'the mapping says bypass_auth: true' : 'the mapping is open';
}

interface Asked {
  readonly method: string;
  readonly path: string;
  /** Names and values in turn. */
  readonly headers: readonly string[];
}

function forwardedFor(ctx: Context): string[] {
  const address = publicAddress(ctx);
  return forwardedHeaders(ctx, address, address.path);
}

function askedAcross(
  ctx: Context,
  question: Parameters<typeof upstreamRequest>[0],
  { includeBody }: AuthService,
  target: Target,
): Asked {
  const path = target.kind === 'remote' ? target.path : '';
  const {
    method,
    path: sentPath,
    headers,
  } = upstreamRequest(question, path, includeBody && foreseenBody(ctx, includeBody.maxBytes));
  return { method, path: sentPath, headers };
}

function askedHere(ctx: Context, record: AuthService): Asked {
  const { method, url, headers } = createPortQuestion(record)(ctx, ctx.req.headers);
  return { method, path: url, headers: headerPairs(headers) };
}

/** Its length alone can be known before it is sent. */
function foreseenBody({ req }: Context, maxBytes: number): AuthBody {
  return { bytes: Buffer.alloc(0), isWhole: Number(req.headers['content-length'] ?? 0) <= maxBytes };
}

function bodyText({ includeBody }: AuthService): string {
  if (includeBody === undefined) return 'none';
  const { maxBytes, allowPartial } = includeBody;
  return `its first ${maxBytes} bytes; a larger one is ${allowPartial ? 'cut off' : 'refused with 413'}`;
}

function consequences(record: AuthService) {
  const { allowedAuthorizationHeaders, failureModeAllow, statusOnError } = record;
  const names = allowedAuthorizationHeaders.join(', ');
  return {
    on_200: names === '' ? 'the request goes on' : `the request goes on with ${names} as the answer says`,
    on_refusal: 'any other status below 500 is the answer to the client',
    on_error: failureModeAllow ? 'the request goes on without an identity' : `the client gets ${statusOnError}`,
  };
}
