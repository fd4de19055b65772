/** Explains a request with the gateway's own functions in the gateway's own order, without sending or counting it. */
import type { Context } from 'koa';
import {
  type AgingVersion,
  type Facts,
  factsOf,
  type Gateway,
  headerPairs,
  type ReadyRoute,
  refuseMethod,
} from '#gateway';
import {
  type Addresses,
  createAddresses,
  createSafePath,
  formatTraceparent,
  Problem,
  pathOf,
  problem,
  publicBase,
  requestContext,
  sanitisePath,
  searchOf,
  traceOf,
} from '#http';
import type { Match, RouteVerdict } from '#routing';
import { type Conceal, createConceal } from './conceal.ts';
import type {
  CorsPart,
  ExplainRequest,
  Explanation,
  HeaderPart,
  MappingPart,
  Outcome,
  RequestPart,
  VersionPart,
} from './explanation.ts';
import { faultsOfRequest, imagineRequest } from './imagined-request.ts';
import { type ClientHeaders, explainAuth, explainLimit, explainTarget, identifyAs, placeOf } from './stages.ts';

/** Throws `bad-argument` for a request that no client could send. */
export type Explain = (request: ExplainRequest) => Explanation;

/** The settings of the middleware in front of the gateway. */
export interface EntrySettings {
  readonly addresses: Addresses;
  /** The origin that the site-wide CORS setting permits for this request; `''`: none. */
  readonly allowedOrigin: (ctx: Context) => string;
  /** The option of `createSafePath`. */
  readonly strictPaths: boolean;
}

/** @default entry: trusts no proxy and permits no origin */
export function createExplain({ parts }: Gateway, entry: EntrySettings = closedEntry()): Explain {
  const { table, preflights, identity, identityHeaders, versionOf } = parts;
  const checkPath = createSafePath(entry);

  /** What ends before a mapping is looked for; undefined: the request goes on. */
  function explainEntry(ctx: Context): Partial<Explanation> | undefined {
    const site = siteCors(ctx, entry.allowedOrigin(ctx));
    if (site !== undefined && isPreflight(ctx) && preflights.routeOf(ctx) === undefined)
      return { cors: site, outcome: preflightOutcome };
    checkPath(ctx, nothing);
    refuseMethod(ctx.method);
    identity.strip(ctx.req.headers);
    return undefined;
  }

  function explainMatch(ctx: Context, request: ExplainRequest, client: ClientHeaders): Partial<Explanation> {
    const preflight = preflights.routeOf(ctx) !== undefined;
    const facts = preflight ? announcedBy(ctx) : factsOf(ctx);
    const verdicts = table.explain(facts);
    const match = table.match(facts, firstShare);
    const version = versionOf?.(facts.path, match?.route);
    const ended = version?.ended();
    const found = {
      ...candidateParts(verdicts, client.conceal, request),
      version: versionPart(version, requestContext(ctx).rootPath),
    };
    const site = siteCors(ctx, entry.allowedOrigin(ctx));
    if (match === undefined)
      return { ...found, cors: site, outcome: refused('routing', ended ?? problem('not-found')) };
    const { route, shadow } = match;
    const partOf = (one: ReadyRoute) => mappingPart(verdictOf(one, verdicts), client.conceal);
    const matched = { ...found, mapping: partOf(route), cors: mappingCors(ctx, route, preflight) ?? site };
    if (preflight) return { ...matched, outcome: preflightOutcome };
    if (ended !== undefined) return { ...matched, outcome: refused('routing', ended) };
    const copied = shadow && { ...partOf(shadow), url: urlOfCopy(shadow, facts) };
    return { ...matched, shadow: copied, ...explainStages(ctx, facts, match, request, client) };
  }

  function explainStages(
    ctx: Context,
    facts: Facts,
    { route }: Match<ReadyRoute>,
    { user }: ExplainRequest,
    client: ClientHeaders,
  ): Partial<Explanation> {
    const auth = explainAuth(parts, ctx, facts, route, client.conceal);
    if (user !== undefined) identifyAs(parts, ctx, route, user);
    if (route.redirection !== undefined) return { auth, ...redirected(ctx, facts, route) };
    const asked = { auth, rate_limit: explainLimit(parts, facts, route, client.conceal) };
    try {
      return { ...asked, target: explainTarget(parts, ctx, facts, route, client), outcome: { kind: 'forwarded' } };
    } catch (thrown) {
      return { ...asked, outcome: refused('forwarding', thrown) };
    }
  }

  function urlOfCopy({ mapping, rewritten }: ReadyRoute, { path, search }: Facts): string {
    const target = parts.resolve(mapping.service);
    const base = target.kind === 'remote' ? (target.origins()[0] ?? '') + target.path : '';
    return base + (rewritten(path) ?? '') + search;
  }

  return function explain(request) {
    const faults = faultsOfRequest(request);
    if (faults.length > 0) throw problem('bad-argument', { errors: faults });
    const ctx = imagineRequest(request, entry.addresses);
    const pairs = headerPairs(ctx.req.headers);
    const generated = [requestContext(ctx).requestId, formatTraceparent(traceOf(ctx))];
    const client = { pairs, conceal: createConceal({ pairs, generated, identityHeaders }) };
    const explanation = { ...nothingYet, request: requestPart(ctx, request, identityHeaders, entry.strictPaths) };
    try {
      return { ...explanation, ...(explainEntry(ctx) ?? explainMatch(ctx, request, client)) };
    } catch (thrown) {
      return { ...explanation, outcome: refused('before_routing', thrown) };
    }
  };
}

/** The parts that a request has not reached. */
const nothingYet = {
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

/** Picks the first of the mappings that share their requests by weight, so that the answer is always the same. */
function firstShare(): number {
  return 0;
}

async function nothing(): Promise<void> {}

function closedEntry(): EntrySettings {
  return { addresses: createAddresses(), allowedOrigin: () => '', strictPaths: false };
}

/** Rethrows anything but a Problem: it is a bug. */
function refused(stage: Extract<Outcome, { kind: 'refused' }>['stage'], thrown: unknown): Outcome {
  if (!(thrown instanceof Problem)) throw thrown;
  return { kind: 'refused', stage, status: thrown.status, problem: thrown.slug, detail: thrown.message };
}

function requestPart(
  ctx: Context,
  { method, url, user }: ExplainRequest,
  identityHeaders: readonly string[],
  strictPaths: boolean,
): RequestPart {
  const { req } = ctx;
  const { addresses } = requestContext(ctx);
  return {
    method,
    url,
    path: sanitisePath(pathOf(ctx.url), strictPaths),
    query: searchOf(ctx.url),
    scheme: addresses.scheme(req),
    host: addresses.host(req),
    client: addresses.client(req),
    user,
    identity_headers: identityHeaders,
    stripped: identityHeaders.filter((name) => req.headers[name] !== undefined),
  };
}

/** Counts the mappings that lose by their path alone, and lists them only with `all`: they may be thousands. */
function candidateParts(
  verdicts: readonly RouteVerdict<ReadyRoute>[],
  conceal: Conceal,
  { all = false }: ExplainRequest,
) {
  const listed = verdicts.filter(({ outcome, by }) => all || outcome !== 'lost' || by !== 'path');
  return {
    candidates: listed.map((verdict) => ({
      ...mappingPart(verdict, conceal),
      outcome: verdict.outcome,
      by: verdict.by,
    })),
    candidates_not_listed: verdicts.length - listed.length,
  };
}

function mappingPart(
  { route, reason }: Pick<RouteVerdict<ReadyRoute>, 'route' | 'reason'>,
  conceal: Conceal,
): MappingPart {
  return {
    name: route.name,
    prefix: route.prefix,
    conditions: route.conditions(),
    reason: conceal.text(reason),
    source: route.source && placeOf(route.source),
  };
}

function verdictOf(route: ReadyRoute, verdicts: readonly RouteVerdict<ReadyRoute>[]) {
  const verdict = verdicts.find((one) => one.route === route);
  return { route, reason: verdict?.reason ?? '' };
}

/** `root`: the public path of the gateway, without a slash at the end. */
function versionPart(version: AgingVersion | undefined, root: string): VersionPart | undefined {
  if (version === undefined) return undefined;
  const { record, headers, ended } = version;
  const { deprecation, sunset, link } = headers(root);
  const values = { Deprecation: deprecation, Sunset: sunset, Link: link };
  return {
    name: record.name,
    prefix: record.prefix,
    source: placeOf(record.source),
    ended: ended() !== undefined,
    headers: Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [{ name, value }])),
  };
}

function isPreflight({ method, req }: Context): boolean {
  return method === 'OPTIONS' && req.headers['access-control-request-method'] !== undefined;
}

/** The attributes of the request that a preflight announces. */
function announcedBy(ctx: Context): Facts {
  return factsOf(ctx, { method: ctx.req.headers['access-control-request-method'] });
}

function mappingCors({ req }: Context, { cors, mapping }: ReadyRoute, preflight: boolean): CorsPart | undefined {
  if (cors === undefined) return undefined;
  const { origin } = req.headers;
  const headers = headerParts(cors.headersFor(origin, preflight));
  return { rule: 'mapping', origins: mapping.cors?.origins ?? [], origin, allowed: headers.length > 0, headers };
}

/** `allowed`: the origin that the setting permits; `''`: none. */
function siteCors({ req }: Context, allowed: string): CorsPart | undefined {
  if (allowed === '') return undefined;
  const headers = headerParts({ 'Access-Control-Allow-Origin': allowed });
  return { rule: 'CORS_ORIGINS', origins: [allowed], origin: req.headers.origin, allowed: true, headers };
}

function headerParts(headers: Readonly<Record<string, string>>): readonly HeaderPart[] {
  return Object.entries(headers).map(([name, value]) => ({ name, value }));
}

function redirected(ctx: Context, { path, search }: Facts, { mapping, redirection }: ReadyRoute): Partial<Explanation> {
  const location = redirection?.({ path, search }, publicBase(ctx));
  if (location === undefined) return { outcome: refused('forwarding', problem('bad-path')) };
  const { status = 301 } = mapping.redirect ?? {};
  return { redirect: { status, location }, outcome: { kind: 'redirect', status } };
}
