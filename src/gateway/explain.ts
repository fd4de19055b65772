/** What becomes of a request, told by the very functions that it would meet: nobody is asked, and nothing is counted. */
import type { Context } from 'koa';
import {
  type Addresses,
  createAddresses,
  createSafePath,
  exchangeOf,
  faultsOfRequest,
  formatTraceparent,
  imagineRequest,
  Problem,
  problem,
  publicBase,
  traceOf,
} from '#http';
import type { Identity } from '#proxy';
import type { Match, RouteVerdict, Table } from '#routing';
import { createConceal } from './conceal.ts';
import { createExplainAuth, type ExplainAuthParts } from './explain-auth.ts';
import { isPreflight, mappingCors, siteCors } from './explain-cors.ts';
import { createExplainLimit, type ExplainLimitParts } from './explain-limit.ts';
import { explainMatch, mappingPart } from './explain-match.ts';
import { requestPart } from './explain-request.ts';
import { type ClientHeaders, createExplainTarget, type ExplainTargetParts } from './explain-target.ts';
import { explainVersion } from './explain-version.ts';
import type { Explanation, Outcome, Question } from './explanation.ts';
import { type Facts, factsOf } from './facts.ts';
import { headerPairs } from './header-pairs.ts';
import { refuseMethod } from './journey.ts';
import type { Preflights } from './preflights.ts';
import type { ReadyRoute } from './route.ts';
import type { AgingVersion, VersionOf } from './version-life.ts';

/** What stands before a gateway, told to it so that it can explain a request from its beginning. */
export interface Entrance {
  readonly addresses: Addresses;
  /** The origin that a script of another origin is permitted on every route without a rule of its own; `''`: none. */
  readonly allowedOrigin: (ctx: Context) => string;
  /** As `createSafePath` was told. */
  readonly strictPaths: boolean;
}

export interface ExplainParts {
  readonly table: Table<ReadyRoute>;
  readonly preflights: Preflights;
  readonly identity: Identity;
  /** Undefined: no record speaks of a version. */
  readonly versionOf: VersionOf | undefined;
  /** Lower-case names that no client may send. */
  readonly identityHeaders: readonly string[];
  readonly auth: ExplainAuthParts;
  readonly limit: ExplainLimitParts;
  readonly target: ExplainTargetParts;
  readonly entrance?: Entrance | undefined;
}

/** Throws `bad-argument` for a request that no client could send. */
export type Explain = (question: Question) => Explanation;

export function createExplain(parts: ExplainParts): Explain {
  const { table, preflights, identity, identityHeaders, versionOf, entrance = closedEntrance() } = parts;
  const auth = createExplainAuth(parts.auth);
  const explainLimit = createExplainLimit(parts.limit);
  const explainTarget = createExplainTarget(parts.target);
  const enterSafely = createSafePath(entrance);

  /** What ends before a mapping is looked for; undefined: it goes on. */
  function enter(ctx: Context): Partial<Explanation> | undefined {
    const site = siteCors(ctx, entrance.allowedOrigin(ctx));
    if (site !== undefined && isPreflight(ctx) && preflights.routeOf(ctx) === undefined)
      return { cors: site, outcome: permission };
    enterSafely(ctx, nothing);
    refuseMethod(ctx.method);
    identity.strip(ctx.req.headers);
    return undefined;
  }

  function meet(ctx: Context, question: Question, client: ClientHeaders): Partial<Explanation> {
    const preflight = preflights.routeOf(ctx) !== undefined;
    const facts = preflight ? announcedBy(ctx) : factsOf(ctx);
    const verdicts = table.explain(facts);
    const candidates = explainMatch(verdicts, client.conceal, question.all ?? false);
    const site = siteCors(ctx, entrance.allowedOrigin(ctx));
    const match = table.match(facts, firstShare);
    const version = versionOf?.(facts.path, match?.route);
    const ended = version?.ended();
    const begun = { ...candidates, version: versionPart(ctx, version) };
    if (match === undefined)
      return { ...begun, cors: site, outcome: refused('routing', ended ?? problem('not-found')) };
    const { route, shadow } = match;
    const partOf = (one: ReadyRoute) => mappingPart(verdictOf(one, verdicts), client.conceal);
    const met = { ...begun, mapping: partOf(route), cors: mappingCors(ctx, route, preflight) ?? site };
    if (preflight) return { ...met, outcome: permission };
    if (ended !== undefined) return { ...met, outcome: refused('routing', ended) };
    const copied = shadow && { ...partOf(shadow), url: urlOfCopy(shadow, facts) };
    return { ...met, shadow: copied, ...pass(ctx, facts, match, question, client) };
  }

  function pass(
    ctx: Context,
    facts: Facts,
    { route }: Match<ReadyRoute>,
    { user }: Question,
    client: ClientHeaders,
  ): Partial<Explanation> {
    const asked = auth.explain(ctx, facts, route, client.conceal);
    if (user !== undefined) auth.identify(ctx, route, user);
    if (route.redirection !== undefined) return { auth: asked, ...redirected(ctx, facts, route) };
    const limited = { auth: asked, rate_limit: explainLimit(facts, route, client.conceal) };
    try {
      return { ...limited, target: explainTarget(ctx, facts, route, client), outcome: { kind: 'forwarded' } };
    } catch (thrown) {
      return { ...limited, outcome: refused('forwarding', thrown) };
    }
  }

  function urlOfCopy({ mapping, rewritten }: ReadyRoute, { path, search }: Facts): string {
    const target = parts.target.resolve(mapping.service);
    const base = target.kind === 'remote' ? (target.origins()[0] ?? '') + target.path : '';
    return base + (rewritten(path) ?? '') + search;
  }

  return function explain(question) {
    const faults = faultsOfRequest(question);
    if (faults.length > 0) throw problem('bad-argument', { errors: faults });
    const ctx = imagineRequest(question, entrance.addresses);
    const pairs = headerPairs(ctx.req.headers);
    const made = [exchangeOf(ctx).requestId, formatTraceparent(traceOf(ctx))];
    const client = { pairs, conceal: createConceal({ pairs, made, identityHeaders }) };
    const told = { ...unknown, request: requestPart(ctx, question, identityHeaders, entrance) };
    try {
      return { ...told, ...(enter(ctx) ?? meet(ctx, question, client)) };
    } catch (thrown) {
      return { ...told, outcome: refused('before_routing', thrown) };
    }
  };
}

function verdictOf(route: ReadyRoute, verdicts: readonly RouteVerdict<ReadyRoute>[]) {
  const verdict = verdicts.find((one) => one.route === route);
  return { route, reason: verdict?.reason ?? '' };
}

/** What is not known until the request has come so far. */
const unknown = {
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

const permission: Outcome = { kind: 'preflight', status: 204 };

/** Of mappings that share their requests, the one that is tried first. */
function firstShare(): number {
  return 0;
}

async function nothing(): Promise<void> {}

function closedEntrance(): Entrance {
  return { addresses: createAddresses(), allowedOrigin: () => '', strictPaths: false };
}

/** What is no Problem is a fault of ours, and passed on. */
function refused(stage: Extract<Outcome, { kind: 'refused' }>['stage'], thrown: unknown): Outcome {
  if (!(thrown instanceof Problem)) throw thrown;
  return { kind: 'refused', stage, status: thrown.status, problem: thrown.slug, detail: thrown.message };
}

function versionPart(ctx: Context, version: AgingVersion | undefined): Explanation['version'] {
  return version && explainVersion(version, exchangeOf(ctx).rootPath);
}

function redirected(ctx: Context, { path, search }: Facts, { mapping, redirection }: ReadyRoute): Partial<Explanation> {
  const location = redirection?.({ path, search }, publicBase(ctx));
  if (location === undefined) return { outcome: refused('forwarding', problem('bad-path')) };
  const { status = 301 } = mapping.redirect ?? {};
  return { redirect: { status, location }, outcome: { kind: 'redirect', status } };
}

/** A preflight meets the mapping of the request that it announces. */
function announcedBy(ctx: Context): Facts {
  return factsOf(ctx, { method: ctx.req.headers['access-control-request-method'] });
}
