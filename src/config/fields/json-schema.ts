/** JSON Schemas (draft-07) of zod's schemas, with what only functions check: ranges, patterns, choices and rules. */
import { parse } from 'yaml';
import * as z from 'zod';

/** A JSON Schema. */
export interface JsonSchema {
  readonly [keyword: string]: unknown;
}

export type Addition = (derived: JsonSchema) => JsonSchema;

/** By schemas, which own what is added to them. A schema made from another one by a check inherits its additions. */
const additions = z.registry<{ readonly add: Addition }>();

/**
 * Adds keywords to the JSON Schema of `schema`, which zod derives without what functions check. They may accept more
 * than the schema does, but never less.
 */
export function described<Schema extends z.ZodType>(schema: Schema, add: JsonSchema | Addition): Schema {
  const earlier = additions.get(schema)?.add;
  const own = typeof add === 'function' ? (add as Addition) : () => add;
  additions.add(schema, { add: (derived) => ({ ...earlier?.(derived), ...own(derived) }) });
  return schema;
}

/** Returns the JSON Schema of what may be written, before defaults and conversions. */
export function jsonSchemaOf(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...derived } = z.toJSONSchema(schema, {
    target: 'draft-07',
    io: 'input',
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      const found = additions.get(zodSchema);
      if (found !== undefined) Object.assign(jsonSchema, found.add(jsonSchema));
    },
  });
  return derived;
}

interface Documented {
  readonly schema: z.ZodType;
  readonly default?: unknown;
  readonly shownDefault?: string;
  readonly docs?: string;
  readonly example?: string;
}

/** Returns what editors show for a field. A default and an example are left out if a record cannot have them. */
export function annotationsOf({ schema, default: value, shownDefault, docs, example }: Documented): JsonSchema {
  const shown = shownDefault === undefined ? value : valueIn(/^`(.+)`$/.exec(shownDefault)?.[1]);
  const isValid = shown !== undefined && schema.safeParse(shown).success;
  const inWords = isValid || docs === undefined ? undefined : (shownDefault ?? value);
  const sample = valueIn(example);
  return {
    ...(docs !== undefined && {
      description: plainText(inWords === undefined ? docs : `${docs} Default: ${inWords}.`),
    }),
    ...(isValid && { default: shown }),
    ...(sample !== undefined && schema.safeParse(sample).success && { examples: [sample] }),
  };
}

function valueIn(yaml: string | undefined): unknown {
  try {
    return yaml === undefined ? undefined : parse(yaml);
  } catch {
    return undefined;
  }
}

/** Removes what Markdown needs in a table, and links within the page of the table. */
export function plainText(markdown: string): string {
  return markdown.replaceAll('\\|', '|').replace(/\[([^\]]+)\]\(#[^)]*\)/g, '$1');
}

/** A pattern for a word in any case: not all tools know flags in a pattern. */
export function anyCase(word: string): string {
  return word.replace(/[a-z]/gi, (letter) => `[${letter.toLowerCase()}${letter.toUpperCase()}]`);
}

/** Any text but these words, in any case. */
export function otherThan(words: Iterable<string>): JsonSchema {
  return { not: { pattern: `^(?:${Array.from(words, anyCase).join('|')})$` } };
}

/** What a field of a map is: true, there, or neither. Editors show the errors of the last three at the field. */
export const isTrue = (name: string) => ({ properties: { [name]: { const: true } }, required: [name] });
export const isGiven = (name: string) => ({ required: [name] });
export const isUntrue = (name: string) => ({ properties: { [name]: { const: false } } });
export const isMissing = (name: string) => ({ properties: { [name]: false } });
export const isEmpty = (name: string) => ({ properties: { [name]: { maxItems: 0, maxLength: 0 } } });

/** A rule about a map that fulfils one of the conditions. */
export function eitherOf(anyOf: readonly JsonSchema[], errorMessage: string): JsonSchema {
  return { anyOf, errorMessage };
}

export function needing(name: string, other: string): JsonSchema {
  return { dependencies: { [name]: [other] }, errorMessage: `${name} needs ${other}` };
}

/** Rules about the presence of fields, each with the message that editors show. */
export function combined(names: readonly string[], { min = 0, max = names.length }): readonly JsonSchema[] {
  const pairs = names.flatMap((name, index) => names.slice(0, index).map((other) => [other, name] as const));
  const never = pairs.map(([one, other]) => ({
    dependencies: { [one]: { properties: { [other]: false } } },
    errorMessage: `${other} cannot be combined with ${one}`,
  }));
  const one = { anyOf: names.map((name) => ({ required: [name] })), errorMessage: `write ${names.join(' or ')}` };
  return [...(max === 1 ? never : []), ...(min === 1 ? [one] : [])];
}
