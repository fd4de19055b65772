/** Explains a request by walking the stages of the gateway, without sending or counting it. */
import type { Context, Middleware } from 'koa';
import { credentialHeaders } from '#config';
import { formatSource, isMap } from '#foundation';
import {
  attributesOf,
  concealParams,
  createConceal,
  type ExplainedRequest,
  type Gateway,
  type GatewayParts,
  type HeaderPart,
  headerPairs,
  type Route,
  rejectMethod,
  type StageParts,
  type VersionLifecycle,
} from '#gateway';
import {
  type Addresses,
  formatTraceparent,
  Problem,
  pathOf,
  problem,
  rejectAddress,
  requestContext,
  sanitisePath,
  searchOf,
  traceOf,
} from '#http';
import { firstShare, type RouteVerdict } from '#routing';
import type {
  CorsPart,
  ExplainRequest,
  Explanation,
  MappingPart,
  Outcome,
  RequestPart,
  VersionPart,
} from './explanation.ts';
import { createSyntheticContext, faultsOfRequest, receivedHeaders } from './synthetic-request.ts';

/**
 * Calls no other process. Checks credentials if the auth service runs in this one. Rejects with `bad-argument` for an
 * invalid request.
 */
export type Explain = (request: ExplainRequest) => Promise<Explanation>;

type ExplainedStages = Omit<StageParts, 'rejection'> & Pick<Explanation, 'outcome'>;

/** What runs before the gateway. */
export interface EntrySettings {
  readonly addresses: Addresses;
  /** Reject requests, in order. */
  readonly checks: readonly Middleware[];
  /** Returns the origin that the site-wide CORS setting permits for this request, or `''`. */
  readonly allowedOrigin: (ctx: Context) => string;
}

export function createExplain({ parts, answersPreflight }: Gateway, entry: EntrySettings): Explain {
  const { table, faultOfClient, preflightRoute, stripHeaders, tokenHeaders, tokenParams } = parts;
  const { versionOf, stages } = parts;

  /** Explains a request that ends before routing. Returns undefined for any other request. */
  function explainEntry(ctx: Context): Partial<Explanation> | undefined {
    const site = siteCors(ctx, entry.allowedOrigin(ctx));
    if (site !== undefined && isPreflight(ctx) && !answersPreflight(ctx))
      return { cors: site, outcome: preflightOutcome };
    for (const check of entry.checks) check(ctx, noNext);
    rejectAddress(faultOfClient?.(ctx));
    stripHeaders(ctx);
    rejectMethod(ctx.method);
    return undefined;
  }

  async function explainMatch(
    ctx: Context,
    request: ExplainRequest,
    client: ExplainedRequest['client'],
  ): Promise<Partial<Explanation>> {
    const preflight = preflightRoute(ctx) !== undefined;
    // A preflight announces a request with another method.
    const announced = preflight ? { method: ctx.req.headers['access-control-request-method'] } : {};
    const attributes = attributesOf(ctx, announced);
    const verdicts = table.explain(attributes);
    const match = table.match(attributes, firstShare);
    const version = versionOf?.(attributes.path, match?.route);
    const site = siteCors(ctx, entry.allowedOrigin(ctx));
    const found = {
      ...candidateParts(verdicts, request),
      version: versionPart(version, requestContext(ctx).rootPath),
    };
    if (match === undefined)
      return { ...found, cors: site, outcome: refused('routing', version?.ended() ?? problem('not-found')) };
    const { route, shadow } = match;
    const partOf = (one: Route) =>
      mappingPart(verdicts.find((verdict) => verdict.route === one) ?? { route: one, reason: '' });
    const matched = { ...found, mapping: partOf(route), cors: mappingCors(ctx, route, preflight) ?? site };
    if (preflight) return { ...matched, outcome: explainPreflight(ctx, route) };
    const { shadow: copy, ...passed } = await explainStages({
      ...match,
      request: { ctx, stage: 'service', statuses: [], descriptors: [] },
      attributes,
      version,
      client,
      user: request.user,
    });
    return { ...matched, ...passed, shadow: shadow && copy && { ...partOf(shadow), ...copy } };
  }

  async function explainStages(asked: ExplainedRequest): Promise<ExplainedStages> {
    const parts: StageParts = {};
    try {
      const rejection = await walk(stages, asked, parts);
      if (rejection !== undefined) return { ...parts, outcome: refused('authentication', rejection) };
    } catch (thrown) {
      // What rejects a request before authentication belongs to its routing.
      return { ...parts, outcome: refused(parts.auth === undefined ? 'routing' : 'forwarding', thrown) };
    }
    const { redirect } = parts;
    return { ...parts, outcome: redirect ? { kind: 'redirect', status: redirect.status } : { kind: 'forwarded' } };
  }

  async function explainWhole(request: ExplainRequest): Promise<Explanation> {
    const faults = faultsOfRequest(request);
    if (faults.length > 0) throw problem('bad-argument', { errors: faults });
    const ctx = createSyntheticContext(request, entry.addresses);
    const pairs = headerPairs(receivedHeaders(request));
    const generated = [requestContext(ctx).requestId, formatTraceparent(traceOf(ctx))];
    const client = { pairs, conceal: createConceal({ pairs, generated, tokenHeaders }) };
    const explanation = { ...unreachedParts, request: requestPart(ctx, request, parts) };
    try {
      return { ...explanation, ...(explainEntry(ctx) ?? (await explainMatch(ctx, request, client))) };
    } catch (thrown) {
      return { ...explanation, outcome: refused('before_routing', thrown) };
    }
  }

  if (tokenParams.length === 0) return explainWhole;
  return async (request) => withTexts(await explainWhole(request), (text) => concealParams(text, tokenParams));
}

/** Replaces all texts in plain data. */
function withTexts<T>(value: T, replace: (text: string) => string): T;
function withTexts(value: unknown, replace: (text: string) => string): unknown {
  if (typeof value === 'string') return replace(value);
  if (Array.isArray(value)) return value.map((item) => withTexts(item, replace));
  if (!isMap(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, withTexts(inner, replace)]));
}

/** Adds what the stages say to `parts`. Resolves to the Problem of the stage that rejects the request, if it says more. */
async function walk(stages: Gateway['parts']['stages'], asked: ExplainedRequest, parts: StageParts): Promise<unknown> {
  for (const { explain } of stages) {
    const { rejection, ...found } = (await explain(asked)) ?? {};
    Object.assign(parts, found);
    if (rejection !== undefined) return rejection;
  }
  return undefined;
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
  // Only the operator may know which object is refused, which backend is missing, what else an ambiguous path could mean, and which list has an address.
  if ((slug === 'not-configured' || slug === 'no-backend') && cause instanceof Error)
    return { kind: 'refused', stage, status, problem: slug, detail: cause.message };
  const isForOperators = slug === 'bad-path' || slug === 'address-denied';
  const detail = isForOperators && typeof cause === 'string' ? `${message} ${cause}` : message;
  return { kind: 'refused', stage, status, problem: slug, detail };
}

function explainPreflight(ctx: Context, { addressFault }: Route): Outcome {
  try {
    rejectAddress(addressFault?.(requestContext(ctx).addresses.knownClient(ctx.req)));
    return preflightOutcome;
  } catch (thrown) {
    return refused('routing', thrown);
  }
}

function requestPart(
  ctx: Context,
  { method, url, user }: ExplainRequest,
  { identityHeaders, tokenHeaders }: Pick<GatewayParts, 'identityHeaders' | 'tokenHeaders'>,
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
    credential_headers: [...new Set([...credentialHeaders, ...tokenHeaders])],
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
    policies: route.mapping.gatewayRoute?.policies,
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

function mappingCors(ctx: Context, { cors, mapping }: Route, preflight: boolean): CorsPart | undefined {
  if (cors === undefined) return undefined;
  const { origin } = ctx.req.headers;
  const headers = headerParts(cors.preview(ctx, preflight));
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
