/** Text of a query argument as a value of a field: strict where JavaScript is lenient. */
import { z } from 'zod';

/** What a column of a row, and a field of an item, can hold. */
export type Scalar = string | number | boolean | null;

/** What came of a text: its value, or what it should have been. */
export type Reading = { readonly ok: true; readonly value: Scalar } | { readonly ok: false; readonly detail: string };

/** Reads text as the schema wants it. Throws at once if the schema is of no scalar. */
export function createScalarReader(schema: z.ZodType<Scalar>): (text: string) => Reading {
  const kind = kindOf(schema);
  return function readScalar(text) {
    const candidate = kind.fromText(text);
    if (candidate === undefined) return { ok: false, detail: `must be ${kind.name}` };
    const result = schema.safeParse(candidate);
    if (result.success) return { ok: true, value: result.data };
    return {
      ok: false,
      detail: result.error.issues[0]?.message ?? 'is not valid',
    };
  };
}

/** A whole number without sign, exponent or blanks; undefined if it is none. Beyond 2^53 it is approximate. */
export function parseWholeNumber(text: string): number | undefined {
  return /^\d+$/.test(text) ? Number(text) : undefined;
}

interface Kind {
  readonly name: string;
  readonly fromText: (text: string) => Scalar | undefined;
}

const kinds: ReadonlyMap<unknown, Kind> = new Map([
  ['string', { name: 'text', fromText: (text: string) => text }],
  [
    'integer',
    {
      name: 'an integer',
      fromText: (text: string) => parseNumber(text, /^-?\d+$/),
    },
  ],
  [
    'number',
    {
      name: 'a number',
      fromText: (text: string) => parseNumber(text, /^-?\d+(?:\.\d+)?$/),
    },
  ],
  ['boolean', { name: 'true or false', fromText: parseBoolean }],
]);

/** JSON Schema is asked, because it sees through refinements, enums, literals and nullable to the plain type. */
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
