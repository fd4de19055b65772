/** A configuration that a program hands in: which lists it has, and whether it has them. */
import * as z from 'zod';
import { strict } from './fields.ts';
import { faultsOf, nameOf, type PlacedFault } from './issues.ts';

/** Plain objects in the shape of the files, snake_case and all: gateway records, limit domains, users, demo tables. */
export interface ConfigurationRecords {
  readonly records: readonly unknown[];
  readonly limits?: readonly unknown[] | undefined;
  readonly users?: readonly unknown[] | undefined;
  readonly demo?: unknown;
}

/** What keeps `value` from being one, whatever stands in its lists: who has no types to tell him may hand in anything. */
export function faultsOfRecords(value: unknown): readonly PlacedFault[] {
  if (nameOf(value) !== 'a map')
    return [{ path: [], message: `the configuration must be a map, not ${nameOf(value)}`, remedy: whole }];
  const { error } = schema.safeParse(value);
  return error === undefined ? [] : faultsOf(error, value, examples);
}

const list = z.array(z.unknown());

const schema = strict({
  records: list,
  limits: list.optional(),
  users: list.optional(),
  demo: z.unknown().optional(),
});

const examples = { records: '[{ kind: Mapping, … }]; [] for none', limits: '[{ domain: … }]', users: '[{ name: … }]' };

const whole =
  'Write it so: { records: [{ kind: Mapping, … }] } with limits, users and demo beside records, where there are any';
