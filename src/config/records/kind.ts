/** The parts common to all kinds of records: apiVersion, kind and name, and readers made from field tables. */
import * as z from 'zod';
import type { Source } from '#foundation';
import { type Examples, type Fault, faultsOf, type PlacedFault } from '../errors.ts';
import { examplesOf, type FieldTable, field, mapOf, type Rule, text, type ValuesOf } from '../fields/field.ts';
import { singleLine } from '../fields/values.ts';
import { mayHoldSecret, quote } from '../quote.ts';

/** The fields that every record starts with. `kind` has been checked before the others are read. */
const head = {
  apiVersion: field({ name: 'apiVersion', schema: text(versionFault, { const: 'gateway/v1' }) }),
  kind: field({ schema: z.string() }),
};

/** The `name` field of a kind, with the kind's own example. */
export function nameField(example: string) {
  return field({
    name: 'name',
    schema: singleLine(nameFault),
    type: 'text',
    docs: 'Unique among records of this kind.',
    example,
  });
}

/** Rejects names that may contain a secret, because errors, logs and diagnostics show names. */
function nameFault(name: string): Fault | undefined {
  if (!mayHoldSecret(name)) return undefined;
  return { message: 'may contain a password', remedy: 'Choose a name that is not a URL or address.' };
}

export type ReadRecord<T> =
  | { readonly ok: true; readonly record: T }
  | { readonly ok: false; readonly faults: readonly PlacedFault[] };

/** Reads a plain value as the record at `source`, or returns all its faults. */
export interface RecordReader<T> {
  (value: unknown, source: Source): ReadRecord<T>;
  readonly schema: z.ZodType;
  readonly fields: FieldTable;
}

export interface KindOptions<Table extends FieldTable, T> {
  readonly fields: Table;
  readonly rules?: readonly Rule<Table>[];
  /** Examples for nested fields. */
  readonly innerExamples?: Examples;
  readonly toRecord: (fields: ValuesOf<Table>, source: Source) => T;
}

export function recordReader<const Table extends FieldTable, T>(options: KindOptions<Table, T>): RecordReader<T> {
  const { fields, rules, innerExamples, toRecord } = options;
  const schema = mapOf(fields, rules, head);
  const examples = { apiVersion: 'gateway/v1', ...examplesOf(fields), ...innerExamples };
  function readFields(value: unknown, source: Source): ReadRecord<T> {
    const read = schema.safeParse(value);
    return read.success
      ? { ok: true, record: toRecord(read.data, source) }
      : { ok: false, faults: faultsOf(read.error, value, examples) };
  }
  return Object.assign(readFields, { schema, fields });
}

/** A record with the fields of its table as they are. */
export type PlainRecord<Kind extends string, Table> = ValuesOf<Table> & {
  readonly kind: Kind;
  readonly source: Source;
};

export function plainReader<const Kind extends string, const Table extends FieldTable>(
  kind: Kind,
  fields: Table,
  rules: readonly Rule<Table>[] = [],
): RecordReader<PlainRecord<Kind, Table>> {
  return recordReader({ fields, rules, toRecord: (values, source) => ({ kind, ...values, source }) });
}

function versionFault(version: string): Fault | undefined {
  if (version === 'gateway/v1') return undefined;
  return {
    message: `${quote(version)} is not supported`,
    remedy: isAmbassadorVersion(version)
      ? 'Write apiVersion: gateway/v1. GATEWAY_DOMAIN=getambassador.io reads Ambassador records of v0 to v3alpha1.'
      : 'Write apiVersion: gateway/v1',
  };
}

/** Includes the groups of Edge Stack and of previews, such as `gateway.getambassador.io`. */
export function isAmbassadorVersion(apiVersion: string): boolean {
  return /^(?:ambassador|(?:[\w-]+\.)*getambassador\.io)\//.test(apiVersion);
}
