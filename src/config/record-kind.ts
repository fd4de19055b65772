/** A kind of record: a schema, how its fields are written, and what it becomes. */
import type * as z from 'zod';
import type { Source } from './configuration.ts';
import { type Examples, faultsOf, type PlacedFault } from './issues.ts';

type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly faults: readonly PlacedFault[] };

/** Turns a plain value into the record that stands at `source`, or says everything that is wrong with it. */
export type RecordKind<T> = (value: unknown, source: Source) => Parsed<T>;

export interface RecordKindOptions<Fields, T> {
  readonly schema: z.ZodType<Fields>;
  /** The same as `schema` reads, sooner, or undefined where that has to look. */
  readonly readOrdinary?: (value: unknown) => Fields | undefined;
  readonly examples: Examples;
  readonly become: (fields: Fields, source: Source) => T;
}

export function recordKind<Fields, T>(options: RecordKindOptions<Fields, T>): RecordKind<T> {
  const { schema, readOrdinary = () => undefined, examples, become } = options;
  return (value, source) => {
    const ordinary = readOrdinary(value);
    if (ordinary !== undefined) return { ok: true, value: become(ordinary, source) };
    const read = schema.safeParse(value);
    return read.success
      ? { ok: true, value: become(read.data, source) }
      : { ok: false, faults: faultsOf(read.error, value, examples) };
  };
}
