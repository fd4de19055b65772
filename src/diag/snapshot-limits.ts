/** Limits as rows, as deep as they are nested, each with how often it was asked and how full it is. */
import type { Limit, LimitDescriptor, LimitDomain } from '#config';
import type { UsageOf } from '#ratelimit';
import { isSecretKey, type NamesSecret } from './conceal-text.ts';
import type { LimitRow } from './diagnostics.ts';

export interface LimitRowParts {
  readonly usageOf: UsageOf;
  readonly namesSecret: NamesSecret;
}

export function limitRows(domains: readonly LimitDomain[], parts: LimitRowParts): LimitRow[] {
  return domains.flatMap(({ domain, descriptors }) => rowsOf({ domain, path: '', shown: '' }, descriptors, parts));
}

interface Place {
  readonly domain: string;
  /** Of the descriptors above, and the same without what is secret. Ends with a separator. */
  readonly path: string;
  readonly shown: string;
}

function rowsOf(above: Place, descriptors: readonly LimitDescriptor[], parts: LimitRowParts): LimitRow[] {
  const { domain } = above;
  return descriptors.flatMap(({ key, value, limits, descriptors: below, source }) => {
    const path = above.path + entryText(key, value);
    const shown =
      above.shown + entryText(key, value !== undefined && isSecretKey(key, parts.namesSecret) ? '…' : value);
    const own = limits.map((limit): LimitRow => {
      const usage = parts.usageOf(domain, path, limit);
      return {
        domain,
        descriptor: shown,
        limit: limitText(limit),
        source: `${source.file}:${source.line}`,
        hits: usage?.hits ?? 0,
        over: usage?.over ?? 0,
        fullness: usage?.fullness,
      };
    });
    return [...own, ...rowsOf({ domain, path: `${path} › `, shown: `${shown} › ` }, below, parts)];
  });
}

function entryText(key: string, value: string | undefined): string {
  return value === undefined ? key : `${key}=${value}`;
}

/** `10 per minute`, `5 per 30 seconds (token bucket)`. */
function limitText({ unit, unitMultiplier, requestsPerUnit, unlimited, algorithm, shadowMode }: Limit): string {
  if (unlimited) return 'unlimited';
  const window = unitMultiplier === 1 ? unit : `${unitMultiplier} ${unit}s`;
  const how = [algorithm === 'fixed_window' ? '' : algorithm.replace('_', ' '), shadowMode ? 'shadow' : ''];
  const said = how.filter(Boolean).join(', ');
  return `${requestsPerUnit} per ${window}${said && ` (${said})`}`;
}
