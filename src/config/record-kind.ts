/** A kind of record: a schema, how its fields are written, and what it becomes. */
import type * as z from 'zod';
import type { Source } from './configuration.ts';
import { type Examples, faultsOf, type PlacedFault } from './issues.ts';

type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly faults: readonly PlacedFault[] };

/** Turns a plain value into the record that stands at `source`, or says everything that is wrong with it. */
export type RecordKind<T> = (value: unknown, source: Source) => Parsed<T>;

export function recordKind<Fields, T>(
  schema: z.ZodType<Fields>,
  examples: Examples,
  become: (fields: Fields, source: Source) => T,
): RecordKind<T> {
  return (value, source) => {
    const read = schema.safeParse(value);
    return read.success
      ? { ok: true, value: become(read.data, source) }
      : { ok: false, faults: faultsOf(read.error, value, examples) };
  };
}
