/** The public face of a row: which columns a client sees, under which names, in which order. */
import type { z } from 'zod';
import { createScalarReader, type Reading, type Scalar } from './scalar.ts';

export type Column<Row extends object> = keyof Row & string;

/** An item as a client sees it, its names in the view's order. */
export type PublicItem = Readonly<Record<string, Scalar>>;

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

export interface ViewDefinition<Row extends object> {
  /** A column without duplicates: the tie-breaker of every order. */
  readonly key: Column<Row>;
  /** By public name (`snake_case`), in the order in which items show them. */
  readonly fields: Readonly<Record<string, Field<Row>>>;
}

/** A field of a view that has been made: what its text means is settled. */
export interface ViewField<Row extends object> {
  readonly name: string;
  readonly column: Column<Row>;
  readonly schema: z.ZodType<Scalar>;
  readonly toPublic: ((value: Scalar, place: string) => Scalar) | undefined;
  /** Text of a filter as the column's value. */
  readonly read: (text: string, place: string) => Reading;
}

export interface View<Row extends object> {
  readonly key: Column<Row>;
  /** In order, by public name. */
  readonly fields: ReadonlyMap<string, ViewField<Row>>;
  readonly list: readonly ViewField<Row>[];
}

/** Settles a view, once, at start. Throws a TypeError when a name or a schema cannot be used. */
export function createView<Row extends object>({ key, fields }: ViewDefinition<Row>): View<Row> {
  const list = Object.entries(fields).map(([name, field]) => createField<Row>(name, field));
  return Object.freeze({
    key,
    fields: new Map(list.map((field) => [field.name, field])),
    list: Object.freeze(list),
  });
}

/** A row as a client sees it: the fields asked for (undefined: all), in the view's order. */
export function present<Row extends object>(
  view: View<Row>,
  row: Row,
  fields: readonly string[] | undefined,
  place: string,
): PublicItem {
  const item: Record<string, Scalar> = {};
  for (const { name, column, toPublic } of view.list) {
    if (fields !== undefined && !fields.includes(name)) continue;
    const value = row[column] as Scalar;
    item[name] = toPublic === undefined ? value : toPublic(value, place);
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

function createField<Row extends object>(name: string, field: Field<Row>): ViewField<Row> {
  // A name of digits would jump the order of an object's keys, and `__proto__` would vanish from it.
  if (!/^[a-z][a-z0-9_]*$/.test(name)) throw new TypeError(`a view's field cannot be named ${JSON.stringify(name)}`);
  const { column, schema, toPublic, fromPublic } = field as unknown as LooseField<Row>;
  return Object.freeze({
    name,
    column,
    schema,
    toPublic,
    read: createFilterReader(schema, fromPublic),
  });
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
