/** Rules between records: one of each name, one Mapping of each prefix, one auth service, one rate-limit service. */
import type { ConfigurationError } from './configuration.ts';
import type { GatewayRecord } from './records.ts';

export interface Kept<T> {
  readonly kept: readonly T[];
  readonly errors: readonly ConfigurationError[];
}

/** Of records that clash the first stays, so that a later mistake neither moves a route nor opens one that was guarded. */
export function keepCompatible(records: readonly GatewayRecord[]): Kept<GatewayRecord> {
  const named = keepFirst(records, ({ kind, name }) => `${kind} ${name}`, clashOfNames);
  const placed = keepFirst(named.kept, slotOf, clashOfSlots);
  return { kept: placed.kept, errors: [...named.errors, ...placed.errors] };
}

type Clash<T> = (later: T, first: T) => ConfigurationError;

/** One pass over a map, however many there are. */
export function keepFirst<T>(records: readonly T[], keyOf: (record: T) => string, clash: Clash<T>): Kept<T> {
  const first = new Map<string, T>();
  const errors: ConfigurationError[] = [];
  for (const record of records) {
    const key = keyOf(record);
    const holder = first.get(key);
    if (holder === undefined) first.set(key, record);
    else errors.push(clash(record, holder));
  }
  return { kept: [...first.values()], errors };
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

/** What only one record can have: a prefix, or being the service of its kind. */
function slotOf(record: GatewayRecord): string {
  return record.kind === 'Mapping' ? record.prefix : record.kind;
}

function clashOfSlots(later: GatewayRecord, first: GatewayRecord): ConfigurationError {
  const mapping = later.kind === 'Mapping';
  return {
    source: later.source,
    record: `${later.kind} ${later.name}`,
    message: mapping
      ? `the prefix "${later.prefix}" already belongs to Mapping ${first.name}`
      : `there is already ${first.kind} ${first.name}, and only one is supported`,
    other: first.source,
    remedy: mapping ? 'Give each Mapping a prefix of its own.' : `Keep one ${later.kind}.`,
  };
}
