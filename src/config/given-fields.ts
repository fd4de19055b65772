/** Maps of many optional fields, read at the cost of those that are there. */
import type * as z from 'zod';

type Shape = Readonly<Record<string, z.ZodType>>;

/**
 * What a strict map of this shape reads to, or undefined where something is wrong or unusual: then that map itself is to be
 * asked, which goes through all of its fields. Of 40 fields a record gives five, and there may be 10,000 records. What a field
 * is when it is not given must be no map or list: all records share it.
 */
export function createGivenFields<S extends Shape>(shape: S): (value: unknown) => z.infer<z.ZodObject<S>> | undefined {
  const schemas = new Map(Object.entries(shape));
  const whenAbsent = [...schemas].map(([name, schema]) => ({ name, read: schema.safeParse(undefined) }));
  const absent = Object.fromEntries(whenAbsent.map(({ name, read }) => [name, read.data]));
  const required = whenAbsent.filter(({ read }) => !read.success).map(({ name }) => name);

  return function givenFields(value) {
    if (!isPlainMap(value) || !required.every((name) => Object.hasOwn(value, name))) return undefined;
    const fields: Record<string, unknown> = { ...absent };
    for (const name of Object.keys(value)) {
      const read = schemas.get(name)?.safeParse(Reflect.get(value, name));
      if (read?.success !== true) return undefined;
      fields[name] = read.data;
    }
    return fields as z.infer<z.ZodObject<S>>;
  };
}

function isPlainMap(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
