/** The public view of a row: names, schemas, computed fields, and text to typed values. */
import { z } from 'zod';
import { describeIssue } from '#http';
import type { Parsed } from './arguments.ts';

export type Column<Row extends object> = keyof Row & string;

/** What a column of a row, and a field of an item, can be. */
export type Scalar = string | number | boolean | null;

/** What an item can show: a scalar, or plain data made of scalars, such as a price. */
export type PublicValue = Scalar | readonly PublicValue[] | { readonly [name: string]: PublicValue };

/** An item as a client sees it, its names in the view's order. */
export type PublicItem = Readonly<Record<string, PublicValue>>;

/**
 * One public field over one column. With `toPublic` and `fromPublic` the public value is computed, and the two are a
 * codec: `fromPublic(String(toPublic(value, baseUrl)), baseUrl)` is `value`, so that the field works as a filter.
 * `baseUrl` is an absolute URL with a slash at the end, which the caller passes to `toPublicItem` and to the parser.
 */
export type Field<Row extends object> = {
  readonly [C in Column<Row>]: {
    readonly column: C;
    /** Of the public value: checks filters, and documents the field. */
    readonly schema: z.ZodType<Scalar>;
    readonly toPublic?: (value: Row[C], baseUrl: string) => Scalar;
    /** Gets text that the schema has accepted; undefined when no row can have it. */
    readonly fromPublic?: (text: string, baseUrl: string) => Row[C] | undefined;
  };
}[Column<Row>];

/** A public field that is computed from the whole row: shown, but no filter and no order. Undefined: this item has none. */
export interface DerivedField<Row extends object> {
  /** Documents the field; optional where items may have none. */
  readonly schema: z.ZodType;
  readonly show: (row: Row, baseUrl: string) => PublicValue | undefined;
}

export interface ViewDefinition<Row extends object> {
  /** A unique column: the tie-breaker of every order. */
  readonly key: Column<Row>;
  /** The name of an item in the API's description: `HotelBooking`. @default none */
  readonly name?: string;
  /** By public name (`snake_case`), in the order in which items show them. */
  readonly fields: Readonly<Record<string, Field<Row> | DerivedField<Row>>>;
}

export interface ViewField<Row extends object> {
  readonly name: string;
  readonly column: Column<Row>;
  readonly schema: z.ZodType<Scalar>;
  readonly toPublic: ((value: Scalar, baseUrl: string) => Scalar) | undefined;
  /** Text of a filter as the column's value. */
  readonly read: (text: string, baseUrl: string) => Parsed<Scalar>;
  /** Whether a row may have null there. */
  readonly isNullable: boolean;
}

export interface View<Row extends object> extends ItemShape {
  readonly key: Column<Row>;
  /** The fields to filter and sort by, in order, by public name. */
  readonly fields: ReadonlyMap<string, ViewField<Row>>;
  readonly list: readonly ViewField<Row>[];
  /** All that an item shows, in order. */
  readonly shown: ReadonlyMap<string, DerivedField<Row>>;
  /** Whether any field may depend on the base URL. */
  readonly usesBaseUrl: boolean;
}

/** The part of a view that describes its items, independent of their rows. */
export interface ItemShape {
  readonly name: string | undefined;
  readonly shown: ReadonlyMap<string, Pick<DerivedField<never>, 'schema'>>;
}

/** Made once, at start. Throws a TypeError when a name or a schema cannot be used. */
export function createView<Row extends object>({ key, name: itemName, fields }: ViewDefinition<Row>): View<Row> {
  const entries = Object.entries(fields);
  for (const [name] of entries) checkName(name);
  const list = entries.flatMap(([name, field]) => ('show' in field ? [] : [createField<Row>(name, field)]));
  const byName = new Map(list.map((field) => [field.name, field]));
  return Object.freeze({
    key,
    name: itemName,
    fields: byName,
    list: Object.freeze(list),
    shown: new Map(entries.map(([name, field]) => [name, 'show' in field ? field : shownOf(byName.get(name))])),
    usesBaseUrl: entries.some(([, field]) => 'show' in field || field.toPublic !== undefined),
  });
}

/** A row as a client sees it: the fields asked for (undefined: all), in the view's order. */
export function toPublicItem<Row extends object>(
  view: View<Row>,
  row: Row,
  fields: readonly string[] | undefined,
  baseUrl: string,
): PublicItem {
  const item: Record<string, PublicValue> = {};
  for (const [name, { show }] of view.shown) {
    if (fields !== undefined && !fields.includes(name)) continue;
    const value = show(row, baseUrl);
    if (value !== undefined) item[name] = value;
  }
  return item;
}

export interface UrlFieldOptions<Row extends object> {
  readonly column: Column<Row>;
  /** Of the column, so that the URL works as a filter. */
  readonly schema: z.ZodType<Scalar>;
  /** From the base URL to the collection, such as `messages/`. @default '' */
  readonly path?: string;
}

/** The field with an item's URL: `url: urlField<MessageRow>({ column: 'id', schema: z.int32(), path: 'messages/' })`. */
export function urlField<Row extends object>({ column, schema, path = '' }: UrlFieldOptions<Row>): Field<Row> {
  const readKey = createScalarReader(schema);
  const field = {
    column,
    schema: z.url(),
    toPublic: (value: Scalar, baseUrl: string) => `${baseUrl}${path}${encodeURIComponent(String(value))}`,
    fromPublic(text: string, baseUrl: string): Scalar | undefined {
      const collection = `${baseUrl}${path}`;
      if (!text.startsWith(collection)) return undefined;
      const key = decodeSegment(text.slice(collection.length));
      const parsed = key === undefined ? undefined : readKey(key);
      return parsed?.ok ? parsed.value : undefined;
    },
  };
  return field as unknown as Field<Row>;
}

/**
 * An RFC 3339 time in UTC, for columns that hold what `toISOString` writes. Clients may leave out the milliseconds, which
 * a comparison of texts would not forgive.
 */
export const timeSchema = z.iso.datetime().overwrite((text) => {
  const ms = Date.parse(text);
  // It runs on text that is no time, too.
  return Number.isNaN(ms) ? text : new Date(ms).toISOString();
});

/** A whole number without sign, exponent or blanks; undefined if it is none. Beyond 2^53 it is approximate. */
export function parseWholeNumber(text: string): number | undefined {
  return /^\d+$/.test(text) ? Number(text) : undefined;
}

/** Parses text strictly, as the schema wants it. Throws at once if the schema is of no scalar. */
export function createScalarReader(schema: z.ZodType<Scalar>): (text: string) => Parsed<Scalar> {
  const kind = kindOf(schema);
  return function readScalar(text) {
    const candidate = kind.fromText(text);
    if (candidate === undefined) return { ok: false, detail: `must be ${kind.name}` };
    const result = schema.safeParse(candidate, { error: describeIssue });
    if (result.success) return { ok: true, value: result.data };
    return {
      ok: false,
      detail: result.error.issues[0]?.message ?? 'is not valid',
    };
  };
}

/** Without the link between codec and column that `Field` has: inside a view the column is known by name only. */
interface LooseField<Row extends object> {
  readonly column: Column<Row>;
  readonly schema: z.ZodType<Scalar>;
  readonly toPublic?: (value: Scalar, baseUrl: string) => Scalar;
  readonly fromPublic?: (text: string, baseUrl: string) => Scalar | undefined;
}

/** In an object a name of digits would come before all others, and `__proto__` would vanish. */
function checkName(name: string): void {
  if (!/^[a-z][a-z0-9_]*$/.test(name)) throw new TypeError(`a view's field cannot be named ${JSON.stringify(name)}`);
}

function createField<Row extends object>(name: string, field: Field<Row>): ViewField<Row> {
  const { column, schema, toPublic, fromPublic } = field as unknown as LooseField<Row>;
  return Object.freeze({
    name,
    column,
    schema,
    toPublic,
    read: createFieldReader(schema, fromPublic),
    isNullable: schema.safeParse(null).success,
  });
}

function shownOf<Row extends object>(field: ViewField<Row> | undefined): DerivedField<Row> {
  if (field === undefined) throw new TypeError('a view shows only what it defines');
  const { column, schema, toPublic } = field;
  if (toPublic === undefined) return { schema, show: (row) => row[column] as Scalar };
  return { schema, show: (row, baseUrl) => toPublic(row[column] as Scalar, baseUrl) };
}

function createFieldReader(
  schema: z.ZodType<Scalar>,
  fromPublic: ((text: string, baseUrl: string) => Scalar | undefined) | undefined,
): (text: string, baseUrl: string) => Parsed<Scalar> {
  const readScalar = createScalarReader(schema);
  if (fromPublic === undefined) return readScalar;
  return function readComputed(text, baseUrl) {
    const parsed = readScalar(text);
    if (!parsed.ok) return parsed;
    const value = fromPublic(String(parsed.value), baseUrl);
    return value === undefined
      ? { ok: false, detail: 'is not a value that an item here can have' }
      : { ok: true, value };
  };
}

function decodeSegment(text: string): string | undefined {
  if (/[/?#]/.test(text)) return undefined;
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

interface Kind {
  readonly name: string;
  readonly fromText: (text: string) => Scalar | undefined;
}

const kinds: ReadonlyMap<unknown, Kind> = new Map([
  ['string', { name: 'text', fromText: (text: string) => text }],
  ['integer', { name: 'an integer', fromText: (text: string) => parseNumber(text, /^-?\d+$/) }],
  ['number', { name: 'a number', fromText: (text: string) => parseNumber(text, /^-?\d+(?:\.\d+)?$/) }],
  ['boolean', { name: 'true or false', fromText: parseBoolean }],
]);

/** Reads the type from the schema's JSON Schema, which sees through refinements, enums, literals and nullable. */
function kindOf(schema: z.ZodType<Scalar>): Kind {
  const json = z.toJSONSchema(schema);
  const types = (json.anyOf ?? [json]).flatMap(({ type }) => type);
  const kind = kinds.get(types.find((type) => type !== 'null'));
  if (kind === undefined) throw new TypeError('a field of a view needs the schema of a string, a number or a boolean');
  return kind;
}

function parseNumber(text: string, pattern: RegExp): number | undefined {
  if (!pattern.test(text)) return undefined;
  const number = Number(text);
  return Math.abs(number) <= Number.MAX_SAFE_INTEGER ? number : undefined;
}

function parseBoolean(text: string): boolean | undefined {
  return text === 'true' ? true : text === 'false' ? false : undefined;
}
