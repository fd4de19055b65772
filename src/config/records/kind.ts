/** What every kind of record shares: the fields at its head, and how a table of rows becomes a reader of records. */
import { type Examples, type Fault, faultsOf, type PlacedFault, type Source } from '../errors.ts';
import { examplesOf, type FieldTable, field, mapOf, type Rule, text, type ValuesOf } from '../fields/field.ts';
import { label } from '../fields/values.ts';
import { mayHoldSecret, quote } from '../quote.ts';

/** The fields at the head of every record. `kind` is already known when the others are read. */
const head = {
  apiVersion: field({
    name: 'apiVersion',
    schema: text(versionFault),
    type: 'text',
    docs: 'Always `gateway/v1`.',
    example: 'gateway/v1',
  }),
  kind: field({
    name: 'kind',
    schema: text(() => undefined),
    type: 'text',
    docs: 'Of the record.',
    example: 'Mapping',
  }),
};

/** The name, unique among the records of a kind. Each kind has its own example. */
export function recordName(example: string) {
  return field({
    name: 'name',
    schema: label(nameFault),
    type: 'text',
    docs: 'Unique among records of this kind.',
    example,
  });
}

/** Errors, logs and diagnostics show names. */
function nameFault(name: string): Fault | undefined {
  if (!mayHoldSecret(name)) return undefined;
  return { message: 'holds what may be a password', remedy: 'Give it a name without an address.' };
}

export type ReadRecord<T> =
  | { readonly ok: true; readonly record: T }
  | { readonly ok: false; readonly faults: readonly PlacedFault[] };

/** Turns a plain value into the record at `source`, or lists everything that is wrong with it. */
export type RecordReader<T> = (value: unknown, source: Source) => ReadRecord<T>;

export interface KindOptions<Table extends FieldTable, T> {
  readonly fields: Table;
  readonly rules?: readonly Rule<Table>[];
  /** Of nested fields. */
  readonly innerExamples?: Examples;
  readonly become: (fields: ValuesOf<Table>, source: Source) => T;
}

export function recordReader<const Table extends FieldTable, T>(options: KindOptions<Table, T>): RecordReader<T> {
  const { fields, rules, innerExamples, become } = options;
  const schema = mapOf(fields, rules, head);
  const examples = { ...examplesOf({ ...head, ...fields }), ...innerExamples };
  return (value, source) => {
    const read = schema.safeParse(value);
    return read.success
      ? { ok: true, record: become(read.data, source) }
      : { ok: false, faults: faultsOf(read.error, value, examples) };
  };
}

/** A record that is its fields as they are. */
export type PlainRecord<Kind extends string, Table> = ValuesOf<Table> & {
  readonly kind: Kind;
  readonly source: Source;
};

export function plainReader<const Kind extends string, const Table extends FieldTable>(
  kind: Kind,
  fields: Table,
  rules: readonly Rule<Table>[] = [],
): RecordReader<PlainRecord<Kind, Table>> {
  return recordReader({ fields, rules, become: (values, source) => ({ kind, ...values, source }) });
}

function versionFault(version: string): Fault | undefined {
  if (version === 'gateway/v1') return undefined;
  return {
    message: `${quote(version)} is not known`,
    remedy: isAmbassadors(version)
      ? "Write apiVersion: gateway/v1; with GATEWAY_DOMAIN=getambassador.io records of Ambassador's v0 to v3alpha1 are read."
      : 'Write apiVersion: gateway/v1',
  };
}

export function isAmbassadors(apiVersion: string): boolean {
  return /^(?:ambassador|(?:x\.)?getambassador\.io)\//.test(apiVersion);
}
