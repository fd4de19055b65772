/** `Field`, one row for one field of a record, and what is derived from a table of rows: a strict schema, defaults, examples, documentation. */
import * as z from 'zod';
import type { Examples, Fault } from '../errors.ts';

/** One field of a record, with everything that is specific to it. Its key in the table is its name in our types. */
export interface Field<Value> {
  /** As records write it: `timeout_ms`. */
  readonly name: string;
  /** Reads a value; its issues carry message and remedy. */
  readonly schema: z.ZodType<Value>;
  /** The value when a record leaves the field out. A row without `default` is required. */
  readonly default?: NoInfer<Value>;
  /** The columns of config/README.md; `shownDefault` only where `default` does not say it. */
  readonly type: string;
  readonly shownDefault?: string;
  readonly docs: string;
  /** A correct value, for error messages: `3000`. */
  readonly example: string;
  /** Whether a redirect, which calls no service, may have the field. @default true */
  readonly besideRedirect?: false;
  /** Whether mappings that share requests by weight must have the same value. @default false */
  readonly sameInGroup?: true;
  /** What Ambassador's field of this name becomes. @default the same value */
  readonly ambassador?: AmbassadorReader;
}

/** Translates a field of Ambassador; `all` are the fields of its record. */
export type AmbassadorReader = (value: unknown, all: Fields) => Translation;

export type Fields = Readonly<Record<string, unknown>>;

/** Our fields in place of Ambassador's, with a notice where they do not say everything that it said. */
export interface Translation {
  readonly fields: Fields;
  /** `message` continues the name of the field. */
  readonly notice?: Fault | undefined;
}

export type FieldTable = Readonly<Record<string, Field<unknown>>>;

type ValueOf<Row> = Row extends Field<infer Value> ? Value : never;

type Frozen<Value> = Value extends readonly (infer Item)[] ? readonly Item[] : Value;

/** Plain data with every default filled in. */
export type ValuesOf<Table> = { readonly [P in keyof Table]: Frozen<ValueOf<Table[P]>> };

/** What a record says: undefined for a field that it leaves out. */
export type Given<Table> = { readonly [P in keyof Table]: ValueOf<Table[P]> | undefined };

/** A field with a default, or a required one. */
export function field<Value>(row: Field<Value>): Field<Value> {
  return row;
}

/** A field that is undefined when it is left out. */
export function optional<Value>(row: Omit<Field<Value>, 'default'>): Field<Value | undefined> {
  return { ...row, default: undefined };
}

/** What several fields of one map may not say together. */
export interface Rule<Table> {
  /** The field that the error names. */
  readonly at: keyof Table;
  /** Other fields that the rule reads. It is skipped while one of them is invalid. */
  readonly reads?: readonly (keyof Table)[];
  readonly faultOf: (given: Given<Table>) => Fault | undefined;
}

/**
 * The strict schema of a map with these fields. Every rule is judged, however many unrelated fields are wrong. The fields
 * of `checked` are required and checked like the others, and no part of the result.
 */
export function mapOf<const Table extends FieldTable>(
  table: Table,
  rules: readonly Rule<Table>[] = [],
  checked: FieldTable = {},
) {
  const rows = Object.entries(table).map(([key, row]) => ({ key, name: row.name, default: row.default }));
  const keys = new Map(rows.map(({ key, name }) => [name, key]));
  const map = strict(shapeOf({ ...checked, ...table }));
  const isMap = ({ value }: { readonly value: unknown }) => typeof value === 'object' && value !== null;
  const judged = rules.length === 0 ? map : map.superRefine(judge, { when: isMap });
  // Every key of the table is filled in, which the loop cannot prove to the compiler.
  return judged.transform((value) => valuesOf(value) as unknown as ValuesOf<Table>);

  function judge(value: Fields, { issues }: z.core.$RefinementCtx<Fields>): void {
    const wrong = new Set(issues.map(({ path }) => path?.[0]));
    const given = givenOf(value) as unknown as Given<Table>;
    for (const { at, reads = [], faultOf } of rules) {
      if (wrong.size > 0 && [at, ...reads].some((key) => wrong.has(table[key]?.name))) continue;
      complain({ value, issues }, [String(table[at]?.name)], faultOf(given));
    }
  }

  function givenOf(value: Fields): Fields {
    const given: Record<string, unknown> = {};
    for (const name of Object.keys(value)) given[keys.get(name) ?? ''] = value[name];
    return given;
  }

  function valuesOf(value: Fields): Fields {
    const values: Record<string, unknown> = {};
    for (const { key, name, default: whenMissing } of rows) {
      const given = value[name];
      values[key] = given === undefined ? whenMissing : given;
    }
    return values;
  }
}

function shapeOf(table: FieldTable): Record<string, z.ZodType> {
  return Object.fromEntries(
    Object.values(table).map((row) => [row.name, 'default' in row ? row.schema.optional() : row.schema]),
  );
}

/** The values of a map that gives none of its fields. Required ones are undefined. */
export function defaultsOf<Table extends FieldTable>(table: Table): ValuesOf<Table> {
  return Object.fromEntries(Object.entries(table).map(([key, row]) => [key, row.default])) as ValuesOf<Table>;
}

export function examplesOf(table: FieldTable): Examples {
  return Object.fromEntries(Object.values(table).map(({ name, example }) => [name, example]));
}

/** One line of the tables in config/README.md, as Markdown. */
export interface FieldDocs {
  readonly name: string;
  readonly type: string;
  readonly default: string;
  readonly docs: string;
}

export function docsOf(table: FieldTable): readonly FieldDocs[] {
  return Object.values(table).map((row) => ({
    name: row.name,
    type: row.type,
    default: row.shownDefault ?? shown(row),
    docs: row.docs,
  }));
}

function shown(row: Field<unknown>): string {
  if (!('default' in row)) return 'required';
  return row.default === undefined
    ? 'none'
    : `\`${typeof row.default === 'string' ? row.default : JSON.stringify(row.default)}\``;
}

/** A string in which `faultOf` finds no fault. */
export function text(faultOf: (text: string) => Fault | undefined) {
  return z.string().check((payload) => complain(payload, [], faultOf(payload.value)));
}

/** For what becomes part of a header or of a request: one that is too long is refused by clients and servers on its way. */
export function lengthFault(value: { readonly length: number }, max: number): Fault | undefined {
  if (value.length <= max) return undefined;
  return { message: `has ${value.length} characters, and at most ${max} are allowed`, remedy: 'Write a shorter one.' };
}

/** What zod gives a check to report issues. */
type Complaints = Pick<z.core.ParsePayload, 'value' | 'issues'>;

/** Reports a fault in the part of a value at `path`; nothing when there is none. */
export function complain({ value, issues }: Complaints, path: PropertyKey[], fault: Fault | undefined): void {
  if (fault === undefined) return;
  issues.push({ code: 'custom', input: value, path, message: fault.message, params: { remedy: fault.remedy } });
}

/**
 * A map with these keys and no others. zod passes on a message and nothing else, so the message lists the known keys,
 * without those in `refused`, which are in the shape only to explain why they are not supported.
 */
export function strict<Shape extends z.core.$ZodLooseShape>(shape: Shape, refused: readonly string[] = []) {
  const known = Object.keys(shape)
    .filter((key) => !refused.includes(key))
    .join(' ');
  return z.strictObject(shape, {
    error: (issue) => (issue.code === 'unrecognized_keys' ? known : undefined),
  });
}
