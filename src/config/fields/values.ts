/** Schemas for common values: flags, numbers, durations, names, lists, methods and protocols. */
import * as z from 'zod';
import { delayMsMax, hasControlCharacter } from '#foundation';
import type { Fault } from '../errors.ts';
import { quote } from '../quote.ts';
import { type Choice, lengthFault, reportFault, text } from './field.ts';
import { described, type JsonSchema, jsonSchemaOf } from './json-schema.ts';

/** The common part of a row for a boolean field. */
export const flag = { schema: z.boolean(), type: 'true or false', example: 'true' } as const;

/** The common part of a row for a duration in milliseconds. Pass 0 for `min` where 0 means no limit. */
export function milliseconds(min: 0 | 1 = 1) {
  const number = z.preprocess(rejectDuration, wholeNumber(min, delayMsMax)) as z.ZodType<number, number>;
  return { schema: number, type: 'milliseconds', example: '3000' } as const;
}

/** Offers the number for a duration with a unit, such as `5s`. */
function rejectDuration(value: unknown, { issues }: z.core.$RefinementCtx): unknown {
  const ms = typeof value === 'string' ? parseDuration(value.replace(/\s/g, '')) : undefined;
  if (ms === undefined) return value;
  reportFault({ value, issues }, [], {
    message: 'must be a number of milliseconds',
    remedy: `Write ${ms}, without a unit.`,
  });
  return z.NEVER;
}

export function wholeNumber(min: number, max: number) {
  const number = z.number().check(({ value, issues }) => {
    if (Number.isInteger(value) && value >= min && value <= max) return;
    const message = `must be a whole number from ${min} to ${max}, not ${value}`;
    issues.push({ code: 'custom', input: value, message });
  });
  return described(number, { type: 'integer', minimum: min, maximum: max });
}

/** Rejects empty lists and maps. */
export function filled<Schema extends z.ZodType<object>>(schema: Schema, remedy: string): Schema {
  const checked = schema.check((payload) => {
    if (Object.keys(payload.value).length === 0) reportFault(payload, [], { message: 'is empty', remedy });
  });
  return described(checked, ({ type }) => (type === 'object' ? { minProperties: 1 } : { minItems: 1, minLength: 1 }));
}

/** Text of at least one character. */
export function notEmpty(remedy: string) {
  return text((value) => (value === '' ? { message: 'is empty', remedy } : undefined), { minLength: 1 });
}

/** A single-line name that is not blank. */
export function singleLine(faultOf: (name: string) => Fault | undefined = () => undefined, schema: JsonSchema = {}) {
  return text(
    (value) =>
      notBlank.test(value) && !hasControlCharacter(value)
        ? faultOf(value)
        : { message: 'is empty or contains control characters', remedy: 'Give it a name on a single line.' },
    { pattern: notBlank.source, ...schema },
  );
}

const notBlank = /\S/;

/** A map of names to texts, all of which are sent with a request. */
export const textMap = z
  .record(singleLine(), z.string())
  .check((payload) => {
    const length = Object.entries(payload.value).flat().join('').length;
    reportFault(payload, [], lengthFault({ length }, 8192));
  })
  .transform((map): readonly (readonly [name: string, value: string])[] => Object.entries(map));

/**
 * Parses with the schema that `select` returns for the value. Unlike a zod union, it reports the errors of one schema
 * only.
 */
export function either<Schema extends z.ZodType>(select: (value: unknown) => Schema) {
  const schema = z.transform((value: z.input<Schema>, { issues }): z.output<Schema> => {
    const read = select(value).safeParse(value);
    if (read.success) return read.data;
    issues.push(...read.error.issues.map((issue) => ({ ...issue, input: undefined })));
    return z.NEVER;
  });
  const alternatives = () => [...new Set(['', 0, true, [], {}].map(select))].map(jsonSchemaOf);
  return Object.assign(
    described(schema, () => ({ anyOf: alternatives() })),
    { ofMap: () => select({}) } satisfies Choice,
  );
}

/** A list of strings, or a single string that separates them by commas. */
export function commaList<T, Item extends string>(item: z.ZodType<T, Item>) {
  const list = either((value) => (typeof value === 'string' ? splitText : texts)).pipe(
    z.array<z.ZodType<T, string>>(item),
  );
  return described(list as z.ZodType<T[], string | Item[]>, () => {
    const items = jsonSchemaOf(item);
    const choices = Array.isArray(items['enum']) ? items['enum'] : [];
    const words = choices.length > 0 && `(?:${choices.join('|')})`;
    return {
      type: ['string', 'array'],
      items,
      ...(words && {
        pattern: `^(?:\\s*${words}?\\s*,)*\\s*${words}?\\s*$`,
        errorMessage: `must be a list of ${choices.join(', ')}`,
      }),
    };
  });
}

const texts = z.array(z.string());
const splitText = z.string().transform((written) =>
  written
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== ''),
);

/** A map, or a list with a single map, which is how Envoy writes it. */
export function listOfOne<T, Input>(schema: z.ZodType<T, Input>) {
  const list = z.array(schema).transform((items, payload): T => {
    const [only] = items;
    if (items.length === 1 && only !== undefined) return only;
    reportFault(payload, [], {
      message: `must contain one entry, not ${items.length}`,
      remedy: 'Write the entry as a map, or as a list of one.',
    });
    return z.NEVER;
  });
  described(list, { minItems: 1, maxItems: 1 });
  return either<z.ZodType<T, Input | Input[]>>((value) => (Array.isArray(value) ? list : schema));
}

interface DurationBounds {
  readonly minMs: number;
  readonly maxMs: number;
  /** How errors name the two. */
  readonly range: string;
}

/** Text such as `250ms`, `1.5s` or `1m30s`, converted to whole milliseconds. */
export function duration(bounds: DurationBounds = { minMs: 1, maxMs: delayMsMax, range: '1ms to 24 days' }) {
  const parsed = text((written) => durationFault(written, bounds), {
    pattern: durationForm.source,
    errorMessage: `must be a duration from ${bounds.range}, such as 250ms`,
  }).transform((written) => parseDuration(written) ?? 0);
  return z.preprocess(rejectNumber, parsed) as z.ZodType<number, string>;
}

function rejectNumber(value: unknown, { issues }: z.core.$RefinementCtx): unknown {
  if (typeof value !== 'number') return value;
  reportFault({ value, issues }, [], {
    message: 'has no unit',
    remedy: `Write ${value}ms, ${value}s or another unit.`,
  });
  return z.NEVER;
}

/** Returns milliseconds, or undefined when the text is not a duration. */
export function parseDuration(written: string): number | undefined {
  if (!durationForm.test(written)) return undefined;
  const parts = written.matchAll(/(?<count>[\d.]+)(?<unit>ms|s|m|h)/g);
  return Math.round(
    [...parts].reduce((sum, { groups }) => sum + Number(groups?.['count']) * (unitsMs[groups?.['unit'] ?? ''] ?? 0), 0),
  );
}

const durationForm = /^(?:\d{1,12}(?:\.\d{1,6})?(?:ms|s|m|h))+$/;
const unitsMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

function durationFault(written: string, { minMs, maxMs, range }: DurationBounds): Fault | undefined {
  const ms = parseDuration(written);
  if (ms !== undefined && ms >= minMs && ms <= maxMs) return undefined;
  return {
    message: `${quote(written)} is not a duration from ${range}`,
    remedy: 'Write a number with its unit, for example "250ms", "1.5s" or "1m".',
  };
}

/** Reports whether the text is a token (RFC 9110 section 5.6.2), like the names of headers and methods. */
export function isToken(text: string): boolean {
  return token.test(text);
}

const token = /^[\w!#$%&'*+.^`|~-]+$/;

/** What JSON Schema can say about a token. */
export const tokenSchema = { pattern: token.source };

/** Rejects lower-case methods: methods are case-sensitive (RFC 9110 section 9.1), so they would never match. */
export function methodFault(method: string): Fault | undefined {
  if (!isToken(method)) {
    return {
      message: `${quote(method)} is not a method`,
      remedy: 'Write one method, such as GET. For several, set method_regex: true and write "GET|HEAD".',
    };
  }
  const upper = method.toUpperCase();
  if (upper === method) return undefined;
  return { message: `${quote(method)} is in lower case, did you mean ${upper}?`, remedy: `Write ${upper}.` };
}

/** What JSON Schema can say about a method. */
export const methodSchema = { allOf: [tokenSchema, { pattern: '^[^a-z]*$', errorMessage: 'must be in upper case' }] };

/** A list of protocols that connections may switch to, in lower case. */
export const upgradeProtocols = commaList(text(upgradeFault).transform((protocol) => protocol.toLowerCase()));

/** Rejects upgrades to other versions of HTTP, whose requests would bypass the gateway's checks. */
function upgradeFault(protocol: string): Fault | undefined {
  if (/^(?:h2c?|http|tls)(?:\/|$)/i.test(protocol)) {
    return {
      message: `${quote(protocol)} would carry requests that bypass the gateway's checks`,
      remedy: 'Remove it; websocket is what most services need.',
    };
  }
  const parts = protocol.split('/');
  if (parts.length <= 2 && parts.every(isToken)) return undefined;
  return {
    message: `${quote(protocol)} is not a protocol`,
    remedy: 'For example: allow_upgrade: [websocket]',
  };
}
