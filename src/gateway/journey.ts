/** A request's way through the gateway: each stage once, and no further than the first that answers. */
import type { Context, Middleware } from 'koa';
import { problem, requestContext } from '#http';
import type { Match, Table } from '#routing';
import { type Facts, factsOf } from './facts.ts';
import type { Identity } from './identity.ts';
import type { Limitation } from './limit.ts';
import type { Preflights } from './preflights.ts';
import type { ReadyRoute } from './route.ts';
import type { Passage, Traffic } from './traffic.ts';
import type { AgingVersion, VersionOf } from './version-life.ts';

export interface JourneyParts {
  readonly table: Table<ReadyRoute>;
  readonly preflights: Preflights;
  /** Of every header that only an auth service may set. */
  readonly identity: Identity;
  /** Undefined: nothing is limited. */
  readonly limitation: Limitation | undefined;
  readonly traffic: Traffic;
  /** Undefined: no record speaks of a version. */
  readonly versionOf: VersionOf | undefined;
}

export function createJourney(parts: JourneyParts): Middleware {
  const { table, preflights, identity, limitation, traffic, versionOf } = parts;

  /** Throws what is said of a version that has ended: nobody refused, and nobody is asked. */
  function begin(ctx: Context, route: ReadyRoute, version: AgingVersion | undefined): Passage {
    const ended = version?.ended();
    const passage = traffic.begin(route.traffic, ctx, ended === undefined ? 'auth' : 'service');
    if (ended !== undefined) throw ended;
    return passage;
  }

  /** Waits only for answers that are not there yet: those of this process are. False: it did not come to the service. */
  async function pass(ctx: Context, facts: Facts, match: Match<ReadyRoute>, version?: AgingVersion): Promise<boolean> {
    const { route, shadow } = match;
    const passage = begin(ctx, route, version);
    const allowed = route.auth === undefined || route.auth.authenticate(ctx, facts);
    if (!(typeof allowed === 'boolean' ? allowed : await allowed)) return false;
    passage.stage = 'limit';
    const counted = route.describe && limitation?.limit(ctx, route.describe(facts));
    if (counted !== undefined) await counted;
    passage.stage = 'service';
    shadow?.shadowing?.copy(ctx);
    await route.forward(ctx);
    return true;
  }

  /** The headers that a mapping adds, such as those for security, are on refusals and errors as well. */
  async function answer(
    ctx: Context,
    facts: Facts,
    match: Match<ReadyRoute>,
    version?: AgingVersion,
  ): Promise<boolean> {
    let isEdited = false;
    try {
      isEdited = await pass(ctx, facts, match, version);
      return isEdited;
    } finally {
      if (!isEdited && !ctx.headerSent) match.route.editResponse?.(ctx);
    }
  }

  async function follow(ctx: Context, facts: Facts, match: Match<ReadyRoute>, version?: AgingVersion): Promise<void> {
    const { name, prefix, cors } = match.route;
    const exchange = requestContext(ctx);
    exchange.mapping = name;
    exchange.route = prefix;
    const run = match.route.editResponse === undefined ? pass : answer;
    if (cors === undefined) await run(ctx, facts, match, version);
    else await cors.around(ctx, () => run(ctx, facts, match, version));
  }

  return async function gateway(ctx) {
    const { method = 'GET', headers } = ctx.req;
    identity.strip(headers);
    const facts = factsOf(ctx);
    const preflight = preflights.routeOf(ctx);
    const match = preflight === undefined ? table.match(facts) : undefined;
    const version = versionOf?.(facts.path, preflight ?? match?.route);
    version?.announce(ctx);
    refuseMethod(method);
    if (preflight !== undefined) preflights.answer(ctx, preflight);
    else if (match !== undefined) await follow(ctx, facts, match, version);
    else {
      traffic.begin(traffic.unmatched, ctx, 'service');
      throw version?.ended() ?? problem('not-found');
    }
  };
}

/** TRACE would echo credentials back (RFC 9110 section 9.3.8), and CONNECT is for another kind of proxy. */
export function refuseMethod(method: string): void {
  if (method === 'TRACE' || method === 'CONNECT') throw problem('method-not-implemented');
}
