/** Shows what is left of the limits of one client, and resets them. */

import type { LimitDomain } from '#config';
import { formatSource } from '#foundation';
import { formatWindow } from '#ratelimit/limit';
import type { Counters, Hit, HitResult } from './counters/counters.ts';
import { CountersUnavailable, checkBounds, type Entry, InvalidRequest, type Rule } from './limiter.ts';
import { hitOf } from './local-limiter.ts';
import { compileRules, type Rules } from './rules.ts';

/** The client: a domain, and the entries of a descriptor from general to specific. */
export interface LimitedClient {
  readonly domain: string;
  readonly entries: readonly Entry[];
}

/**
 * Both return the limits that match the client. They reject with an `InvalidRequest` that says what is configured if
 * none matches, and with a `CountersUnavailable` if the counters cannot be reached.
 */
export interface ClientLimits {
  /** Counts nothing. */
  show(client: LimitedClient): Promise<readonly ClientLimit[]>;
  /** Gives all hits back. */
  reset(client: LimitedClient): Promise<readonly ClientLimit[]>;
}

/** The state of a limit, with members that can be sent as JSON. */
export interface ClientLimit {
  /** For example `10 per minute`. */
  readonly limit: string;
  /** The descriptor as configured, without its values. */
  readonly descriptor: string;
  /** The file and line of its descriptor. */
  readonly source?: string | undefined;
  /** Undefined if it is unlimited. */
  readonly left?: number | undefined;
  /** The seconds until a hit fits if none is left, and otherwise until all are left again. */
  readonly reset_seconds?: number | undefined;
}

export interface ClientLimitsOptions {
  readonly limits: () => readonly LimitDomain[];
  readonly counters: Pick<Counters, 'take'>;
}

export function createClientLimits({ limits, counters }: ClientLimitsOptions): ClientLimits {
  async function take(client: LimitedClient, hits: number): Promise<readonly ClientLimit[]> {
    const { domain, entries } = client;
    checkBounds({ domain, descriptors: [{ entries }] });
    const rules = compileRules(limits());
    const matches = rules.match(domain, entries);
    if (matches.length === 0) throw new InvalidRequest(noMatch(client, rules));
    const counted = matches.filter(({ rule }) => !rule.unlimited);
    const results = await counters.take(counted.map((match) => ({ ...hitOf(match, hits, 0), ...harmless })));
    if (results.some(({ isUncounted }) => isUncounted)) throw new CountersUnavailable('the counters cannot be reached');
    return matches.map(({ rule }) => {
      const result = results[counted.findIndex((match) => match.rule === rule)];
      return stateOf(rule, rule.source && formatSource(rule.source), result);
    });
  }

  return Object.freeze({
    show: (client: LimitedClient) => take(client, 0),
    reset: (client: LimitedClient) => take(client, -everyHit),
  });
}

/** More than any counter can have. */
const everyHit = Number.MAX_SAFE_INTEGER;

/** Each limit is a matter of its own. */
const harmless = Object.freeze({ shadow: true, quota: undefined }) satisfies Partial<Hit>;

function stateOf(rule: Rule, source: string | undefined, result: HitResult | undefined): ClientLimit {
  const { shownDescriptor: descriptor, currentLimit } = rule;
  const where = { descriptor, ...(source && { source }) };
  if (result === undefined) return { limit: 'unlimited', ...where };
  const limit = `${currentLimit.requestsPerUnit} per ${formatWindow(currentLimit)}`;
  return { limit, ...where, left: result.remaining, reset_seconds: result.resetSeconds };
}

const shownMax = 10;

function noMatch({ domain, entries }: LimitedClient, rules: Rules): string {
  const all = [...rules.all()];
  const domains = [...new Set(all.map((rule) => rule.domain))];
  if (!rules.has(domain)) return `there is no domain ${JSON.stringify(domain)}; ${listed('the domains', domains)}`;
  const descriptors = [...new Set(all.filter((rule) => rule.domain === domain).map((rule) => rule.shownDescriptor))];
  const asked = entries.map(({ key, value }) => `${key}=${value}`).join(' ');
  return `no limit of the domain ${JSON.stringify(domain)} matches ${asked}; ${listed('the limits', descriptors)}`;
}

function listed(what: string, names: readonly string[]): string {
  if (names.length === 0) return 'there are no limits';
  const more = names.length > shownMax ? `, and ${names.length - shownMax} more` : '';
  return `${what}: ${names.slice(0, shownMax).join(', ')}${more}`;
}
