/** Views: define the public fields of a row, show rows as public items, and parse text as values of a field. */
import { z } from 'zod';
import { describeIssue } from '#foundation';
import type { Parsed } from './arguments.ts';

export type Column<Row extends object> = keyof Row & string;

/** The value of a column, and of a field that is based on a column. */
export type Scalar = string | number | boolean | null;

/** The value of any field: a scalar, or plain data made of scalars, such as a price. */
export type PublicValue = Scalar | readonly PublicValue[] | { readonly [name: string]: PublicValue };

/** An item as a client sees it, with its fields in the view's order. */
export type PublicItem = Readonly<Record<string, PublicValue>>;

/**
 * A public field that is based on one column. `toPublic` and `fromPublic` convert the value. They must be inverse, so
 * that the field works as a filter: `fromPublic(String(toPublic(value, baseUrl)), baseUrl)` is `value`. `baseUrl` is an
 * absolute URL with a trailing slash, which the caller passes to `toPublicItem` and to the parser.
 */
export type Field<Row extends object> = {
  readonly [C in Column<Row>]: {
    readonly column: C;
    /** Schema of the public value. Validates filters and documents the field. */
    readonly schema: z.ZodType<Scalar>;
    readonly toPublic?: (value: Row[C], baseUrl: string) => Scalar;
    /** Receives text that the schema has accepted. Returns undefined if no row can have the value. */
    readonly fromPublic?: (text: string, baseUrl: string) => Row[C] | undefined;
    /**
     * The path from the base URL to a collection, such as `orders/`, if the value identifies one of its items. HTML pages
     * then link to the item.
     */
    readonly collection?: string;
  };
}[Column<Row>];

/** A public field that is computed from the whole row. It cannot be used to filter or sort. */
export interface DerivedField<Row extends object> {
  /** Documents the field. Make it optional if `show` may return undefined. */
  readonly schema: z.ZodType;
  /** Returns undefined if the item does not have the field. */
  readonly show: (row: Row, baseUrl: string) => PublicValue | undefined;
}

export interface ViewDefinition<Row extends object> {
  /** A unique column, which is the tie-breaker of every order. */
  readonly key: Column<Row>;
  /** The name of the item's schema in OpenAPI, such as `OrderItem`. @default none */
  readonly name?: string;
  /** The fields by public name (in snake_case), in the order in which items show them. */
  readonly fields: Readonly<Record<string, Field<Row> | DerivedField<Row>>>;
}

export interface ViewField<Row extends object> {
  readonly name: string;
  readonly column: Column<Row>;
  readonly schema: z.ZodType<Scalar>;
  readonly toPublic: ((value: Scalar, baseUrl: string) => Scalar) | undefined;
  /** Parses the text of a filter as a value of the column. */
  readonly read: (text: string, baseUrl: string) => Parsed<Scalar>;
  /** Whether the column may be null. */
  readonly isNullable: boolean;
}

export interface View<Row extends object> extends ItemShape {
  readonly key: Column<Row>;
  /** The fields that can filter and sort, by public name, in the order of the definition. */
  readonly fields: ReadonlyMap<string, ViewField<Row>>;
  /** The values of `fields`. */
  readonly list: readonly ViewField<Row>[];
  /** All fields that an item shows, in the order of the definition. */
  readonly shown: ReadonlyMap<string, DerivedField<Row>>;
  /** Whether any field may depend on the base URL. */
  readonly usesBaseUrl: boolean;
  /** The paths of collections by the field whose value identifies one of their items. */
  readonly collections: Readonly<Record<string, string>>;
}

/** The part of a view that describes its items, independent of the type of its rows. */
export interface ItemShape {
  readonly name: string | undefined;
  readonly shown: ReadonlyMap<string, Pick<DerivedField<never>, 'schema'>>;
}

/** Throws a TypeError if the name or the schema of a field is not supported. */
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
    collections: Object.fromEntries(entries.flatMap(([name, field]) => collectionOf(name, field))),
  });
}

function collectionOf<Row extends object>(name: string, field: Field<Row> | DerivedField<Row>): [string, string][] {
  return 'show' in field || field.collection === undefined ? [] : [[name, field.collection]];
}

/** Shows a row as a public item, with the given fields or, if undefined, all of them. */
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
  /** Schema of the column, so that the URL works as a filter. */
  readonly schema: z.ZodType<Scalar>;
  /** The path from the base URL to the collection, such as `messages/`. @default '' */
  readonly path?: string;
}

/**
 * Creates a field for the URL of an item:
 * `url: urlField<MessageRow>({ column: 'id', schema: z.int32(), path: 'messages/' })`.
 */
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
 * Schema of an RFC 3339 time, for columns that contain the output of `toISOString`. Clients may omit the milliseconds or
 * use another time zone, so times are normalized before they are compared as text.
 */
export const timeSchema = z.iso.datetime({ offset: true }).overwrite((text) => {
  const ms = Date.parse(text);
  // Zod runs this even if the text is not a time.
  return Number.isNaN(ms) ? text : new Date(ms).toISOString();
});

/** Parses digits as a whole number. Undefined for any other text, such as one with a sign. Approximate beyond 2^53. */
export function parseWholeNumber(text: string): number | undefined {
  return /^\d+$/.test(text) ? Number(text) : undefined;
}

/** Creates a strict parser for the type of the schema. Throws a TypeError if the schema is not that of a scalar. */
export function createScalarReader(schema: z.ZodType<Scalar>): (text: string) => Parsed<Scalar> {
  const type = scalarTypeOf(schema);
  return function readScalar(text) {
    // PostgreSQL cannot store a NUL in text.
    const candidate = text.includes('\0') ? undefined : type.fromText(text);
    if (candidate === undefined) return { ok: false, detail: `must be ${type.name}` };
    const result = schema.safeParse(candidate, { error: describeIssue });
    if (result.success) return { ok: true, value: result.data };
    return {
      ok: false,
      detail: result.error.issues[0]?.message ?? 'is not valid',
    };
  };
}

/** A `Field` whose column is known only by name. Its conversions accept any scalar. */
interface LooseField<Row extends object> {
  readonly column: Column<Row>;
  readonly schema: z.ZodType<Scalar>;
  readonly toPublic?: (value: Scalar, baseUrl: string) => Scalar;
  readonly fromPublic?: (text: string, baseUrl: string) => Scalar | undefined;
}

/** Rejects names such as `1`, which JavaScript would put before all other members of an object, and `__proto__`. */
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
  if (field === undefined) throw new TypeError('a view can show only the fields that it defines');
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

interface ScalarType {
  readonly name: string;
  readonly fromText: (text: string) => Scalar | undefined;
}

const scalarTypes: ReadonlyMap<unknown, ScalarType> = new Map([
  ['string', { name: 'text', fromText: (text: string) => text }],
  ['integer', { name: 'an integer', fromText: (text: string) => parseNumber(text, /^-?\d+$/) }],
  ['number', { name: 'a number', fromText: (text: string) => parseNumber(text, /^-?\d+(?:\.\d+)?$/) }],
  ['boolean', { name: 'true or false', fromText: parseBoolean }],
]);

/** Determines the type by JSON Schema, which has one even for refinements, enums, literals and nullable types. */
function scalarTypeOf(schema: z.ZodType<Scalar>): ScalarType {
  const json = z.toJSONSchema(schema);
  const types = (json.anyOf ?? [json]).flatMap(({ type }) => type);
  const scalarType = scalarTypes.get(types.find((type) => type !== 'null'));
  if (scalarType === undefined)
    throw new TypeError('a field of a view needs the schema of a string, a number or a boolean');
  return scalarType;
}

function parseNumber(text: string, pattern: RegExp): number | undefined {
  if (!pattern.test(text)) return undefined;
  const number = Number(text);
  return Math.abs(number) <= Number.MAX_SAFE_INTEGER ? number : undefined;
}

function parseBoolean(text: string): boolean | undefined {
  return text === 'true' ? true : text === 'false' ? false : undefined;
}
