/** The public face of a row: which columns a client sees, under which names, in which order. */
import type { z } from 'zod';
import { createScalarReader, type Reading, type Scalar } from './scalar.ts';

export type Column<Row extends object> = keyof Row & string;

/** What an item can show: a scalar, or plain data made of scalars, such as a price. */
export type PublicValue = Scalar | readonly PublicValue[] | { readonly [name: string]: PublicValue };

/** An item as a client sees it, its names in the view's order. */
export type PublicItem = Readonly<Record<string, PublicValue>>;

/**
 * One public field over one column. With `toPublic` and `fromPublic` the public value is computed, and then the two
 * are a codec: `fromPublic(String(toPublic(value, place)), place)` is `value`, so that the field can be filtered by.
 * `place` is whatever absolute URL the caller hands to `present` and to the parser, ending in a slash.
 */
export type Field<Row extends object> = {
  readonly [C in Column<Row>]: {
    readonly column: C;
    /** Of the public value: checks what a filter asks for, and documents the field. */
    readonly schema: z.ZodType<Scalar>;
    readonly toPublic?: (value: Row[C], place: string) => Scalar;
    /** Gets text that the schema has passed; undefined when no row can have it. */
    readonly fromPublic?: (text: string, place: string) => Row[C] | undefined;
  };
}[Column<Row>];

/** A public field that is made of the row and only shown: no filter and no order knows it. Undefined: this item has none. */
export interface ShownField<Row extends object> {
  /** Of what it shows, and so optional where items may have none; documents the field. */
  readonly schema: z.ZodType;
  readonly show: (row: Row, place: string) => PublicValue | undefined;
}

export interface ViewDefinition<Row extends object> {
  /** A column without duplicates: the tie-breaker of every order. */
  readonly key: Column<Row>;
  /** What one item is called where the API is described: `HotelBooking`. @default it has no name there */
  readonly name?: string;
  /** By public name (`snake_case`), in the order in which items show them. */
  readonly fields: Readonly<Record<string, Field<Row> | ShownField<Row>>>;
}

/** A field of a view that has been made: what its text means is settled. */
export interface ViewField<Row extends object> {
  readonly name: string;
  readonly column: Column<Row>;
  readonly schema: z.ZodType<Scalar>;
  readonly toPublic: ((value: Scalar, place: string) => Scalar) | undefined;
  /** Text of a filter as the column's value. */
  readonly read: (text: string, place: string) => Reading;
  /** Whether a row may hold null there. */
  readonly isNullable: boolean;
}

export interface View<Row extends object> extends Face {
  readonly key: Column<Row>;
  /** What can be filtered and sorted by, in order, by public name. */
  readonly fields: ReadonlyMap<string, ViewField<Row>>;
  readonly list: readonly ViewField<Row>[];
  /** All that an item shows, in order. */
  readonly shown: ReadonlyMap<string, ShownField<Row>>;
  /** Whether anything shown depends on the place. */
  readonly isPlaced: boolean;
}

/** As much of a view as its items look like, whatever their rows are. */
export interface Face {
  readonly name: string | undefined;
  readonly shown: ReadonlyMap<string, Pick<ShownField<never>, 'schema'>>;
}

/** Settles a view, once, at start. Throws a TypeError when a name or a schema cannot be used. */
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
    isPlaced: entries.some(([, field]) => 'show' in field || field.toPublic !== undefined),
  });
}

/** A row as a client sees it: the fields asked for (undefined: all), in the view's order. */
export function present<Row extends object>(
  view: View<Row>,
  row: Row,
  fields: readonly string[] | undefined,
  place: string,
): PublicItem {
  const item: Record<string, PublicValue> = {};
  for (const [name, { show }] of view.shown) {
    if (fields !== undefined && !fields.includes(name)) continue;
    const value = show(row, place);
    if (value !== undefined) item[name] = value;
  }
  return item;
}

/** Field's own type ties the codec to its column; inside a view the column is known by name only. */
interface LooseField<Row extends object> {
  readonly column: Column<Row>;
  readonly schema: z.ZodType<Scalar>;
  readonly toPublic?: (value: Scalar, place: string) => Scalar;
  readonly fromPublic?: (text: string, place: string) => Scalar | undefined;
}

/** A name of digits would jump the order of an object's keys, and `__proto__` would vanish from it. */
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
    read: createFilterReader(schema, fromPublic),
    isNullable: schema.safeParse(null).success,
  });
}

function shownOf<Row extends object>(field: ViewField<Row> | undefined): ShownField<Row> {
  if (field === undefined) throw new TypeError('a view shows only what it defines');
  const { column, schema, toPublic } = field;
  if (toPublic === undefined) return { schema, show: (row) => row[column] as Scalar };
  return { schema, show: (row, place) => toPublic(row[column] as Scalar, place) };
}

function createFilterReader(
  schema: z.ZodType<Scalar>,
  fromPublic: ((text: string, place: string) => Scalar | undefined) | undefined,
): (text: string, place: string) => Reading {
  const readScalar = createScalarReader(schema);
  if (fromPublic === undefined) return readScalar;
  return function readComputed(text, place) {
    const reading = readScalar(text);
    if (!reading.ok) return reading;
    const value = fromPublic(String(reading.value), place);
    return value === undefined
      ? { ok: false, detail: 'is not a value that an item here can have' }
      : { ok: true, value };
  };
}
