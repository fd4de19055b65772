/** Fields that may be written in more than one way. */
import * as z from 'zod';
import { complain } from './fields.ts';

/** The schema that `select` picks for a value, so that what is wrong with it is told of the way in which it was meant. */
export function either<T>(select: (value: unknown) => z.ZodType<T>) {
  return z.unknown().transform((value, { issues }): T => {
    const read = select(value).safeParse(value);
    if (read.success) return read.data;
    issues.push(...read.error.issues.map((issue) => ({ ...issue, input: undefined })));
    return z.NEVER;
  });
}

/** A list of texts, or one text with commas between them. */
export function commaList() {
  return either((value) => (typeof value === 'string' ? splitText : texts));
}

const texts = z.array(z.string());
const splitText = z.string().transform((text) =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== ''),
);

/** One map, or a list of one, as Envoy's records have it. */
export function listOfOne<T>(schema: z.ZodType<T>) {
  const list = z.array(schema).transform((items, payload): T => {
    const [only] = items;
    if (items.length === 1 && only !== undefined) return only;
    complain(payload, [], {
      message: `must hold one entry, not ${items.length}`,
      remedy: 'Write the one as a map, or as a list of one.',
    });
    return z.NEVER;
  });
  return either((value) => (Array.isArray(value) ? list : schema));
}
