/** The field that says where an item lives: the place, a path below it and the item's key. */
import { z } from 'zod';
import { createScalarReader, type Scalar } from './scalar.ts';
import type { Column, Field } from './view.ts';

export interface UrlFieldOptions<Row extends object> {
  readonly column: Column<Row>;
  /** Of the column, so that a URL in a filter finds its way back. */
  readonly schema: z.ZodType<Scalar>;
  /** From the place to the collection, such as `messages/`. @default '' */
  readonly path?: string;
}

/** For a view: `url: urlField<MessageRow>({ column: 'id', schema: z.int32(), path: 'messages/' })`. */
export function urlField<Row extends object>({ column, schema, path = '' }: UrlFieldOptions<Row>): Field<Row> {
  const readKey = createScalarReader(schema);
  const field = {
    column,
    schema: z.url(),
    toPublic: (value: Scalar, place: string) => `${place}${path}${encodeURIComponent(String(value))}`,
    fromPublic(text: string, place: string): Scalar | undefined {
      const collection = `${place}${path}`;
      if (!text.startsWith(collection)) return undefined;
      const key = decodeSegment(text.slice(collection.length));
      const reading = key === undefined ? undefined : readKey(key);
      return reading?.ok ? reading.value : undefined;
    },
  };
  return field as unknown as Field<Row>;
}

function decodeSegment(text: string): string | undefined {
  if (/[/?#]/.test(text)) return undefined;
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
