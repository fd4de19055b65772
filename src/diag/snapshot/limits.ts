/** Reads limits as rows, outermost descriptor first, with their hits and fullness. */
import { formatSource, type Limit, type LimitDescriptor, type LimitDomain, redactedEntry } from '#config';
import type { UsageOf } from '#ratelimit';
import type { LimitRow } from '../diagnostics.ts';

/** Returns the first `rowsMax` rows. */
export function limitRows(domains: readonly LimitDomain[], rowsMax: number, usageOf: UsageOf): LimitRow[] {
  const rows: LimitRow[] = [];
  for (const { domain, descriptors } of domains) {
    for (const row of rowsOf({ domain, path: '', shown: '' }, descriptors, usageOf)) {
      if (rows.length === rowsMax) return rows;
      rows.push(row);
    }
  }
  return rows;
}

export function countLimits(domains: readonly LimitDomain[]): number {
  return domains.reduce((sum, { descriptors }) => sum + countLimitsBelow(descriptors), 0);
}

function countLimitsBelow(descriptors: readonly LimitDescriptor[]): number {
  return descriptors.reduce(
    (sum, { limits, descriptors: children }) => sum + limits.length + countLimitsBelow(children),
    0,
  );
}

interface ParentPath {
  readonly domain: string;
  /** The entries of the parent descriptors, ending with a separator. `shown` omits the values that are secret. */
  readonly path: string;
  readonly shown: string;
}

/** A generator, so that only the first of many limits are read. */
function* rowsOf(parent: ParentPath, descriptors: readonly LimitDescriptor[], usageOf: UsageOf): Generator<LimitRow> {
  const { domain } = parent;
  for (const { key, value, limits, descriptors: children, source } of descriptors) {
    const path = parent.path + (value === undefined ? key : `${key}=${value}`);
    const shown = parent.shown + redactedEntry(key, value);
    for (const limit of limits) {
      const usage = usageOf(domain, path, limit);
      yield {
        domain,
        descriptor: shown,
        limit: limitText(limit),
        source: formatSource(source),
        hits: usage?.hits ?? 0,
        over: usage?.over ?? 0,
        fullness: usage?.fullness,
      };
    }
    yield* rowsOf({ domain, path: `${path} › `, shown: `${shown} › ` }, children, usageOf);
  }
}

/** `10 per minute`, `5 per 30 seconds (token bucket)`. */
function limitText({ unit, unitMultiplier, requestsPerUnit, unlimited, algorithm, shadowMode }: Limit): string {
  if (unlimited) return 'unlimited';
  const window = unitMultiplier === 1 ? unit : `${unitMultiplier} ${unit}s`;
  const options = [algorithm === 'fixed_window' ? '' : algorithm.replace('_', ' '), shadowMode ? 'shadow' : ''];
  const note = options.filter(Boolean).join(', ');
  return `${requestsPerUnit} per ${window}${note && ` (${note})`}`;
}
