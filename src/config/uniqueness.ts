/** Rules between records: one of each name, one rate-limit service, one auth service for each mapping, one of each version and match. */
import { keepAuthenticated } from './authentication.ts';
import type { ConfigurationError } from './configuration.ts';
import type { AuthService, HeldPrefix, Mapping } from './gateway-records.ts';
import { heldByMapping } from './held.ts';
import { keepGroups } from './mapping-groups.ts';
import type { GatewayRecord } from './records.ts';

export interface Kept<T> {
  readonly kept: readonly T[];
  readonly errors: readonly ConfigurationError[];
}

export interface Compatible extends Kept<GatewayRecord> {
  /** Where the mappings belong that are not kept. */
  readonly held: readonly HeldPrefix[];
}

/** Of records that clash the first stays, so that a later mistake neither moves a route nor opens one that was guarded. */
export function keepCompatible(records: readonly GatewayRecord[]): Compatible {
  const named = keepFirst(records, ({ kind, name }) => `${kind} ${name}`, clashOfNames);
  const placed = keepFirst(named.kept, slotOf, clashOfSlots);
  const authServices = placed.kept.filter((record): record is AuthService => record.kind === 'AuthService');
  const mappings = placed.kept.filter((record): record is Mapping => record.kind === 'Mapping');
  const authenticated = keepAuthenticated(mappings, authServices);
  const grouped = keepGroups(authenticated.kept);
  const kept: ReadonlySet<GatewayRecord> = new Set(grouped.kept);
  return {
    kept: placed.kept.filter((record) => record.kind !== 'Mapping' || kept.has(record)),
    errors: [named, placed, authenticated, grouped].flatMap(({ errors }) => errors),
    held: records.flatMap((record) => (record.kind === 'Mapping' && !kept.has(record) ? heldByMapping(record) : [])),
  };
}

type Clash<T> = (later: T, first: T) => ConfigurationError;

/** One pass over a map, however many there are. Whatever has no key stays. */
export function keepFirst<T>(
  records: readonly T[],
  keyOf: (record: T) => string | undefined,
  clash: Clash<T>,
): Kept<T> {
  const first = new Map<string, T>();
  const kept: T[] = [];
  const errors: ConfigurationError[] = [];
  for (const record of records) {
    const key = keyOf(record);
    const holder = key === undefined ? undefined : first.get(key);
    if (holder !== undefined) {
      errors.push(clash(record, holder));
      continue;
    }
    if (key !== undefined) first.set(key, record);
    kept.push(record);
  }
  return { kept, errors };
}

function clashOfNames(later: GatewayRecord, first: GatewayRecord): ConfigurationError {
  return {
    source: later.source,
    record: `${later.kind} ${later.name}`,
    message: `there is already a ${first.kind} of this name`,
    other: first.source,
    remedy: 'Rename one of the two, or remove it.',
  };
}

/** What only one record can be: the default auth service, the rate-limit service, or a version. Of everything else there may be many. */
function slotOf(record: GatewayRecord): string | undefined {
  if (record.kind === 'Version') return `${record.kind} ${record.prefix}`;
  const isTheOne = record.kind === 'RateLimitService' || (record.kind === 'AuthService' && record.isDefault);
  return isTheOne ? record.kind : undefined;
}

function clashOfSlots(later: GatewayRecord, { kind, name, source }: GatewayRecord): ConfigurationError {
  return { source: later.source, record: `${later.kind} ${later.name}`, other: source, ...clash() };

  function clash() {
    if (later.kind === 'AuthService') {
      const remedy = `Set default: false, and auth_service: ${later.name} in the mappings that it is for.`;
      return { message: `${kind} ${name} is the default already`, remedy };
    }
    const remedy = `Keep one ${later.kind}.`;
    if (later.kind !== 'Version')
      return { message: `there is already ${kind} ${name}, and only one is supported`, remedy };
    return { message: `${kind} ${name} speaks of ${later.prefix} already`, remedy: `Keep one of the two.` };
  }
}
