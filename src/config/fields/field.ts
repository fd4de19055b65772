/** Tables of a record's fields, from which the strict schema, defaults and examples are derived. */
import * as z from 'zod';
import { type Fields, isMap } from '#foundation';
import { type Examples, type Fault, formatKnownKeys } from '../errors.ts';
import {
  type Addition,
  annotationsOf,
  combined,
  described,
  type JsonSchema,
  jsonSchemaOf,
  needing,
} from './json-schema.ts';

/**
 * Describes one field of a map. The row's key in the table is the field's name in our types. `Input` is what a program
 * may write; it includes undefined if the field may be left out.
 */
export interface Row<Value, Input = unknown, Name extends string = string> {
  /** The name in records, such as `timeout_ms`. @default the key of the row in snake_case */
  readonly name?: Name;
  /** Parses a value. Its issues carry a message and a remedy. */
  readonly schema: z.ZodType<Value, Input>;
  /** The value when a record leaves the field out. A row without `default` is required. */
  readonly default?: NoInfer<Value>;
}

/** Describes one field of a record. A map inside a record has plain rows, because the outer field documents them. */
export interface Field<Value, Input = unknown, Name extends string = string> extends Row<Value, Input, Name> {
  /**
   * The columns of config/README.md, as a test requires. `shownDefault` replaces the text derived from `default`. The
   * build copies `docs` into the declarations, where editors find it.
   */
  readonly type: string;
  readonly shownDefault?: string;
  readonly docs: string;
  /** A valid value for error messages, such as `3000`. */
  readonly example: string;
  /** Whether a redirect, which does not call a service, may have the field. @default true */
  readonly allowedWithRedirect?: false;
  /** Whether mappings that share requests by weight must have the same value. @default false */
  readonly sameInGroup?: true;
  /** Translates Ambassador's field of this name. @default passes the value on */
  readonly ambassador?: AmbassadorReader;
}

/** Translates one field of an Ambassador record; `all` contains all fields of the record. */
export type AmbassadorReader = (value: unknown, all: Fields) => Translation;

/** The fields that replace an Ambassador field. `message` continues a sentence that starts with the field's name. */
export interface Translation {
  readonly fields: Fields;
  /** Set when the fields do not preserve its whole meaning. */
  readonly notice?: Fault | undefined;
  /**
   * Set when the record cannot be used without the field, because it protects requests. `instead` is our field that does
   * the same, if there is one.
   */
  readonly fault?: (Fault & { readonly instead?: string | undefined }) | undefined;
}

type RowTable = Readonly<Record<string, Row<unknown>>>;
type Named<Table> = { readonly [P in keyof Table]: Table[P] & { readonly name: string } };
export type FieldTable = Named<Readonly<Record<string, Field<unknown>>>>;

type ValueOf<R> = R extends Row<infer Value> ? Value : never;

type Frozen<Value> = Value extends readonly (infer Item)[] ? readonly Item[] : Value;

/** The values of a record, with every default filled in. */
export type ValuesOf<Table> = { readonly [P in keyof Table]: Frozen<ValueOf<Table[P]>> };

/** The values in a record, without defaults: undefined for a field that the record omits. */
export type Given<Table> = { readonly [P in keyof Table]: ValueOf<Table[P]> | undefined };

/** What a program may write for a map with these fields, under the names of records. */
export type InputOf<Table> = Flat<
  { readonly [P in keyof Table as RequiredName<P, Table[P]>]: Data<InputOfRow<Table[P]>> } & {
    readonly [P in keyof Table as OptionalName<P, Table[P]>]?: Data<InputOfRow<Table[P]>>;
  }
>;

type InputOfRow<R> = R extends Row<unknown, infer Input> ? Input : never;
type RequiredName<Key, R> = undefined extends InputOfRow<R> ? never : NameOf<Key, R>;
type OptionalName<Key, R> = undefined extends InputOfRow<R> ? NameOf<Key, R> : never;
type NameOf<Key, R> =
  R extends Row<unknown, unknown, infer Name> ? (string extends Name ? SnakeCase<Key> : Name) : never;
type SnakeCase<Key> = Key extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : Key;
type Flat<T> = { [P in keyof T]: T[P] };

/** Accepts frozen lists and maps, which schemas do not change. */
export type Data<T> = T extends readonly (infer Item)[]
  ? readonly Data<Item>[]
  : T extends object
    ? { readonly [P in keyof T]: Data<T[P]> }
    : T;

type WithDefault<Value> = { readonly default: NoInfer<Value> };

/** Defines a field that has a default or is required. */
export function field<Value, Input, const Name extends string>(
  row: Field<Value, Input, Name> & WithDefault<Value>,
): Field<Value, Input | undefined, Name>;
export function field<Value, Input, const Name extends string>(
  row: Field<Value, Input, Name>,
): Field<Value, Input, Name>;
export function field<Value, Input, const Name extends string>(
  row: Row<Value, Input, Name> & WithDefault<Value>,
): Row<Value, Input | undefined, Name>;
export function field<Value, Input, const Name extends string>(row: Row<Value, Input, Name>): Row<Value, Input, Name>;
export function field<Value>(row: Row<Value>): Row<Value> {
  return row;
}

/** Defines a field that is undefined when a record omits it. */
export function optional<Value, Input, const Name extends string>(
  row: Omit<Field<Value, Input, Name>, 'default'>,
): Field<Value | undefined, Input | undefined, Name>;
export function optional<Value, Input, const Name extends string>(
  row: Omit<Row<Value, Input, Name>, 'default'>,
): Row<Value | undefined, Input | undefined, Name>;
export function optional<Value>(row: Omit<Row<Value>, 'default'>): Row<Value | undefined> {
  return { ...row, default: undefined };
}

/** Gives every row of a table its name. */
export function withNames<const Table extends RowTable>(table: Table): Named<Table> {
  const rows = Object.entries(table).map(([key, row]) => [key, { name: snakeCase(key), ...row }]);
  return Object.fromEntries(rows) as Named<Table>;
}

export function snakeCase(key: string): string {
  return key.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`);
}

/** A constraint between several fields of one map. */
export interface Rule<Table> {
  /** The field that the error is reported for. */
  readonly at: keyof Table;
  /** Other fields that the rule reads. The rule is skipped when one of them is invalid. */
  readonly reads?: readonly (keyof Table)[];
  readonly faultOf: (given: Given<Table>) => Fault | undefined;
  /** What JSON Schema can say about the constraint. */
  readonly schema?: JsonSchema;
  /** How many of these fields a map has, for the schema. */
  readonly present?: { readonly of: readonly (keyof Table)[]; readonly min?: 0 | 1; readonly max?: 1 };
  /** The field without which a map cannot have the one at `at`, for the schema. */
  readonly needs?: keyof Table;
}

/**
 * Returns the strict schema of a map with these fields. A rule is applied even when unrelated fields are invalid.
 * The fields of `validatedOnly` are validated like the others but are not part of the result.
 */
export function mapOf<const Table extends RowTable>(
  table: Table,
  rules: readonly Rule<Table>[] = [],
  validatedOnly: RowTable = {},
): z.ZodType<ValuesOf<Table>, InputOf<Table>> {
  const named = withNames(table);
  const rows = Object.entries(named).map(([key, row]) => ({ key, name: row.name, default: row.default }));
  const keys = new Map(rows.map(({ key, name }) => [name, key]));
  const map = strict(shapeOf(withNames({ ...validatedOnly, ...table })));
  const withRules = rules.length === 0 ? map : map.superRefine(applyRules, { when: ({ value }) => isMap(value) });
  // The loops read and fill in every key of the table, but the compiler cannot verify that.
  const whole = withRules.transform(valuesOf) as unknown as z.ZodType<ValuesOf<Table>, InputOf<Table>>;
  return described(whole, () => ({
    properties: documented(withNames({ ...validatedOnly, ...table })),
    ...rulesIn(named, rules),
  }));

  function applyRules(value: Fields, { issues }: z.core.$RefinementCtx<Fields>): void {
    const invalid = new Set(issues.map(({ path }) => path?.[0]));
    const given = givenOf(value) as unknown as Given<Table>;
    for (const { at, reads = [], faultOf } of rules) {
      if (invalid.size > 0 && [at, ...reads].some((key) => invalid.has(named[key].name))) continue;
      reportFault({ value, issues }, [named[at].name], faultOf(given));
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

/** Returns the JSON Schema of each row, with its documentation, default and example. */
function documented(table: Named<RowTable>): JsonSchema {
  const rows = Object.values(table).map((row) => [row.name, { ...jsonSchemaOf(row.schema), ...annotationsOf(row) }]);
  return Object.fromEntries(rows);
}

function rulesIn<Table extends RowTable>(table: Named<Table>, rules: readonly Rule<Table>[]): JsonSchema {
  const nameOf = (key: keyof Table) => table[key].name;
  const allOf = rules.flatMap(({ at, schema, present, needs }) => [
    ...(schema === undefined ? [] : [schema]),
    ...(needs === undefined ? [] : [needing(nameOf(at), nameOf(needs))]),
    ...(present === undefined ? [] : combined(present.of.map(nameOf), present)),
  ]);
  return allOf.length > 0 ? { allOf } : {};
}

function shapeOf(table: Named<RowTable>): Record<string, z.ZodType> {
  return Object.fromEntries(
    Object.values(table).map((row) => [row.name, 'default' in row ? row.schema.optional() : row.schema]),
  );
}

/** The values of an empty map. Required fields are undefined. */
export function defaultsOf<Table extends RowTable>(table: Table): ValuesOf<Table> {
  return Object.fromEntries(Object.entries(table).map(([key, row]) => [key, row.default])) as ValuesOf<Table>;
}

export function examplesOf(table: FieldTable): Examples {
  return Object.fromEntries(Object.values(table).map(({ name, example }) => [name, example]));
}

/** A string for which `faultOf` returns no fault. `schema` is what JSON Schema can say about that. */
export function text(faultOf: (text: string) => Fault | undefined, schema: JsonSchema | Addition = {}) {
  const checked = z.string().check((payload) => reportFault(payload, [], faultOf(payload.value)));
  return described(checked, schema);
}

/** Bounds text that becomes part of a header or request: clients and servers reject headers that are too long. */
export function lengthFault(value: { readonly length: number }, max: number, unit = 'characters'): Fault | undefined {
  if (value.length <= max) return undefined;
  return { message: `has ${value.length} ${unit}, and at most ${max} are allowed`, remedy: 'Write a shorter one.' };
}

/** The part of zod's payload that a check needs to report issues. */
type CheckPayload = Pick<z.core.ParsePayload, 'value' | 'issues'>;

/** Adds `fault` to zod's issues for the part of the value at `path`. Does nothing when `fault` is undefined. */
export function reportFault({ value, issues }: CheckPayload, path: PropertyKey[], fault: Fault | undefined): void {
  if (fault === undefined) return;
  issues.push({ code: 'custom', input: value, path, message: fault.message, params: { remedy: fault.remedy } });
}

/** A map with these keys and no others. From the known keys, errors.ts builds the message about an unknown one. */
export function strict<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  const known = () => Object.entries(shape).map(([name, schema]) => ({ name, inner: keysOf(schema) }));
  return z.strictObject(shape, {
    error: (issue) => (issue.code === 'unrecognized_keys' ? formatKnownKeys(known()) : undefined),
  });
}

/** A schema that is chosen by the value; `ofMap` returns the one for maps. */
export interface Choice {
  readonly ofMap: () => unknown;
}

/** The parts of zod's schemas around or below the schema of a map. */
interface Wrapper extends Partial<Choice> {
  readonly def?: Readonly<Partial<Record<'shape' | 'innerType' | 'in' | 'out' | 'element', unknown>>>;
}

/** Returns the keys of the map that a schema accepts, alone or in a list. Empty if it accepts none. */
function keysOf(schema: unknown): readonly string[] {
  const { def, ofMap }: Wrapper = Object(schema);
  if (def?.shape !== undefined) return Object.keys(Object(def.shape));
  const inner = [ofMap?.(), def?.innerType, def?.element, def?.in, def?.out].filter((one) => one !== undefined);
  return inner.map(keysOf).find((keys) => keys.length > 0) ?? [];
}
