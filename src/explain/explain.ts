/** Explains a request by calling the gateway's own functions in the gateway's order, without sending or counting it. */
import type { Context } from 'koa';
import { formatSource } from '#foundation';
import { attributesOf, type Gateway, headerPairs, type Route, rejectMethod, type VersionLifecycle } from '#gateway';
import {
  type Addresses,
  createHostCheck,
  createSafePath,
  formatTraceparent,
  Problem,
  pathOf,
  problem,
  requestContext,
  sanitisePath,
  searchOf,
  traceOf,
} from '#http';
import { rejectLoop } from '#proxy';
import { firstShare, type RequestAttributes, type RouteVerdict } from '#routing';
import {
  type CorsPart,
  createConceal,
  type ExplainRequest,
  type Explanation,
  type HeaderPart,
  type MappingPart,
  type Outcome,
  type RequestPart,
  type ShadowPart,
  type VersionPart,
} from './explanation.ts';
import {
  type ClientHeaders,
  explainAuth,
  explainLimit,
  explainTarget,
  identifyAs,
  type RoutedRequest,
} from './stages.ts';
import { createSyntheticContext, faultsOfRequest, receivedHeaders } from './synthetic-request.ts';

/** Throws `bad-argument` for an invalid request. */
export type Explain = (request: ExplainRequest) => Explanation;

/** The settings of the middleware that runs before the gateway. */
export interface EntrySettings {
  readonly addresses: Addresses;
  /** Returns the origin that the site-wide CORS setting permits for this request, or `''`. */
  readonly allowedOrigin: (ctx: Context) => string;
}

export function createExplain({ parts }: Gateway, entry: EntrySettings): Explain {
  const { table, preflightRoute, identity, identityHeaders, disguises, versionOf, checkAmbiguity } = parts;
  const checkHost = createHostCheck();
  const checkPath = createSafePath();

  /** Explains a request that ends before routing. Returns undefined for any other request. */
  function explainEntry(ctx: Context): Partial<Explanation> | undefined {
    const site = siteCors(ctx, entry.allowedOrigin(ctx));
    if (site !== undefined && isPreflight(ctx) && preflightRoute(ctx) === undefined)
      return { cors: site, outcome: preflightOutcome };
    checkHost(ctx, noNext);
    checkPath(ctx, noNext);
    identity.rejectNomination(requestContext(ctx).nominated);
    const isFromTrustedProxy = entry.addresses.trusts(ctx.req);
    identity.strip(ctx.req, isFromTrustedProxy);
    disguises.remove(ctx.req, isFromTrustedProxy);
    rejectMethod(ctx.method);
    return undefined;
  }

  function explainMatch(ctx: Context, request: ExplainRequest, client: ClientHeaders): Partial<Explanation> {
    const preflight = preflightRoute(ctx) !== undefined;
    // A preflight announces a request with another method.
    const announced = preflight ? { method: ctx.req.headers['access-control-request-method'] } : {};
    const attributes = attributesOf(ctx, announced);
    const verdicts = table.explain(attributes);
    const match = table.match(attributes, firstShare);
    const version = versionOf?.(attributes.path, match?.route);
    const ended = version?.ended();
    const site = siteCors(ctx, entry.allowedOrigin(ctx));
    const found = {
      ...candidateParts(verdicts, request),
      version: versionPart(version, requestContext(ctx).rootPath),
    };
    if (match === undefined)
      return { ...found, cors: site, outcome: refused('routing', ended ?? problem('not-found')) };
    const { route, shadow } = match;
    disguises.removeUnkept?.(ctx.req, entry.addresses.trusts(ctx.req), route.mapping);
    const partOf = (one: Route) =>
      mappingPart(verdicts.find((verdict) => verdict.route === one) ?? { route: one, reason: '' });
    const matched = { ...found, mapping: partOf(route), cors: mappingCors(ctx, route, preflight) ?? site };
    if (preflight) return { ...matched, outcome: preflightOutcome };
    const refusal = ended ?? refusalOf(ctx, attributes, route);
    if (refusal !== undefined) return { ...matched, outcome: refused('routing', refusal) };
    const copy = shadow && shadowPart(ctx, shadow, partOf(shadow));
    return { ...matched, shadow: copy, ...explainStages({ ctx, attributes, route, client }, request.user) };
  }

  function refusalOf({ req }: Context, attributes: RequestAttributes, route: Route): unknown {
    try {
      rejectLoop(req);
      checkAmbiguity?.(attributes, route);
      return undefined;
    } catch (thrown) {
      return thrown;
    }
  }

  function explainStages(routed: RoutedRequest, user: string | undefined): Partial<Explanation> {
    const { ctx, route } = routed;
    const auth = explainAuth(parts, routed);
    if (user !== undefined) identifyAs(ctx, parts, route, user);
    if (route.transport.location !== undefined) return { auth, ...redirected(ctx, route) };
    const checks = { auth, rate_limit: explainLimit(parts, routed) };
    if (route.auth?.record.removeAuthorization === true) delete ctx.req.headers.authorization;
    try {
      const target = explainTarget(parts, routed);
      return { ...checks, target, outcome: { kind: 'forwarded' } };
    } catch (thrown) {
      return { ...checks, outcome: refused('forwarding', thrown) };
    }
  }

  return function explain(request) {
    const faults = faultsOfRequest(request);
    if (faults.length > 0) throw problem('bad-argument', { errors: faults });
    const ctx = createSyntheticContext(request, entry.addresses);
    const pairs = headerPairs(receivedHeaders(request));
    const generated = [requestContext(ctx).requestId, formatTraceparent(traceOf(ctx))];
    const client = { pairs, conceal: createConceal({ pairs, generated }) };
    const explanation = { ...unreachedParts, request: requestPart(ctx, request, identityHeaders) };
    try {
      return { ...explanation, ...(explainEntry(ctx) ?? explainMatch(ctx, request, client)) };
    } catch (thrown) {
      return { ...explanation, outcome: refused('before_routing', thrown) };
    }
  };
}

/** The parts of an explanation that stay undefined until the request reaches them. */
const unreachedParts = {
  outcome: { kind: 'forwarded' },
  version: undefined,
  mapping: undefined,
  candidates: [],
  candidates_not_listed: 0,
  cors: undefined,
  redirect: undefined,
  auth: undefined,
  rate_limit: undefined,
  shadow: undefined,
  target: undefined,
} as const;

const preflightOutcome: Outcome = { kind: 'preflight', status: 204 };

/** Stands in for the next middleware. */
async function noNext(): Promise<void> {}

/** Rethrows anything but a Problem, because that is a bug. */
function refused(stage: Extract<Outcome, { kind: 'refused' }>['stage'], thrown: unknown): Outcome {
  if (!(thrown instanceof Problem)) throw thrown;
  const { status, slug, message, cause } = thrown;
  // Only the operator may know what else an ambiguous path could mean.
  const detail = slug === 'bad-path' && typeof cause === 'string' ? `${message} ${cause}` : message;
  return { kind: 'refused', stage, status, problem: slug, detail };
}

function requestPart(
  ctx: Context,
  { method, url, user }: ExplainRequest,
  identityHeaders: readonly string[],
): RequestPart {
  const { req } = ctx;
  const { addresses } = requestContext(ctx);
  return {
    method,
    url,
    path: sanitisePath(pathOf(ctx.url)),
    query: searchOf(ctx.url),
    scheme: addresses.scheme(req),
    host: addresses.host(req),
    client: addresses.client(req),
    user,
    identity_headers: identityHeaders,
    stripped: identityHeaders.filter((name) => req.headers[name] !== undefined),
  };
}

/** Only counts mappings whose path does not match, unless `all` is set, because there may be thousands. */
function candidateParts(verdicts: readonly RouteVerdict<Route>[], { all = false }: ExplainRequest) {
  const listed = verdicts.filter(({ outcome, by }) => all || outcome !== 'lost' || by !== 'path');
  return {
    candidates: listed.map((verdict) => ({
      ...mappingPart(verdict),
      outcome: verdict.outcome,
      by: verdict.by,
    })),
    candidates_not_listed: verdicts.length - listed.length,
  };
}

function mappingPart({ route, reason }: Pick<RouteVerdict<Route>, 'route' | 'reason'>): MappingPart {
  return {
    name: route.name,
    prefix: route.prefix,
    conditions: route.conditions(),
    reason,
    source: route.source && formatSource(route.source),
  };
}

/** `root`: the public path of the gateway, without a trailing slash. */
function versionPart(version: VersionLifecycle | undefined, root: string): VersionPart | undefined {
  if (version === undefined) return undefined;
  const { record, headers, ended } = version;
  const { deprecation, sunset, link } = headers(root);
  const values = { Deprecation: deprecation, Sunset: sunset, Link: link };
  return {
    name: record.name,
    prefix: record.prefix,
    source: formatSource(record.source),
    ended: ended() !== undefined,
    headers: Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [{ name, value }])),
  };
}

function isPreflight({ method, req }: Context): boolean {
  return method === 'OPTIONS' && req.headers['access-control-request-method'] !== undefined;
}

function mappingCors({ req }: Context, { cors, mapping }: Route, preflight: boolean): CorsPart | undefined {
  if (cors === undefined) return undefined;
  const { origin } = req.headers;
  const headers = headerParts(cors.headersFor(origin, preflight));
  return { rule: 'mapping', origins: mapping.cors?.origins ?? [], origin, allowed: headers.length > 0, headers };
}

/** `allowed`: the origin that the setting permits, or `''`. */
function siteCors({ req }: Context, allowed: string): CorsPart | undefined {
  if (allowed === '') return undefined;
  const headers = headerParts({ 'Access-Control-Allow-Origin': allowed });
  return { rule: 'CORS_ORIGINS', origins: [allowed], origin: req.headers.origin, allowed: true, headers };
}

function headerParts(headers: Readonly<Record<string, string>>): readonly HeaderPart[] {
  return Object.entries(headers).map(([name, value]) => ({ name, value }));
}

function redirected(ctx: Context, { mapping, transport }: Route): Partial<Explanation> {
  try {
    const { status = 301 } = mapping.redirect ?? {};
    return { redirect: { status, location: transport.location?.(ctx) ?? '' }, outcome: { kind: 'redirect', status } };
  } catch (thrown) {
    return { outcome: refused('forwarding', thrown) };
  }
}

/** Undefined when the path cannot be rewritten, because then no copy is sent. */
function shadowPart(ctx: Context, { transport }: Route, mapping: MappingPart): ShadowPart | undefined {
  try {
    const [origin = ''] = transport.origins?.() ?? [];
    return { ...mapping, url: origin + transport.preview(ctx).path };
  } catch {
    return undefined;
  }
}
