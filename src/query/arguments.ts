/** Parses query strings into named arguments, with the rules for all of them, and the extra arguments of a service. */
import type { z } from 'zod';
import { describeIssue, quoteShort } from '#foundation';
import { type Fault, longQueryFault, problem, queryFault } from '#http';

/** The result of parsing a text: its value, or what is wrong with it. */
export type Parsed<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly detail: string };

// Query strings beyond these limits are rejected as a whole.
const searchLengthMax = 4096;
const argumentsMax = 32;

/** One decoded argument of a query string. */
export interface Argument {
  readonly name: string;
  readonly value: string;
}

/**
 * Parses a query string, with or without its `?`, into a map. Malformed, repeated and empty arguments are added to
 * `faults` instead.
 */
export function readArguments(search: string, faults: Fault[]): ReadonlyMap<string, string> {
  const parts = splitSearch(search);
  const sizeFault = findSizeFault(search.length - (search.startsWith('?') ? 1 : 0), parts);
  if (sizeFault !== undefined) {
    faults.push(sizeFault);
    return new Map();
  }
  const values = new Map<string, string>();
  const repeated = new Set<string>();
  for (const part of parts) {
    const argument = parseArgument(part);
    const detail = argument === undefined ? encodingFault(part) : faultOf(argument, values, repeated);
    if (detail !== undefined) faults.push(queryFault(argument?.name ?? '', detail));
    if (argument !== undefined) values.set(argument.name, argument.value);
  }
  return new Map([...values].filter(([name, value]) => value !== '' && !repeated.has(name)));
}

/** Throws a `bad-argument` problem that lists all faults, if there are any. */
export function throwFaults(faults: readonly Fault[]): void {
  if (faults.length > 0) throw problem('bad-argument', { errors: faults });
}

export function unknownArgument(name: string, known: Iterable<string>): string {
  return `${quoteShort(name)} is not an argument here; known: ${[...known].join(', ')}`;
}

/** Splits a query string at `&`, without decoding its parts. */
export function splitSearch(search: string): string[] {
  const text = search.startsWith('?') ? search.slice(1) : search;
  return text === '' ? [] : text.split('&').filter((part) => part !== '');
}

/**
 * Decodes an argument in application/x-www-form-urlencoded: `a+b=c%20d` is `a b` with the value `c d`. Without `=` the
 * value is empty. Undefined if the encoding is invalid.
 */
export function parseArgument(part: string): Argument | undefined {
  // Other bytes must be percent-encoded in a URL (RFC 3986 section 2). Their character encoding is unknown.
  if (!/^[\x21-\x7e]*$/.test(part)) return undefined;
  const equals = part.indexOf('=');
  const [name, value] = equals < 0 ? [part, ''] : [part.slice(0, equals), part.slice(equals + 1)];
  try {
    const argument = { name: decode(name), value: decode(value) };
    // PostgreSQL cannot store a NUL in text.
    return `${argument.name}${argument.value}`.includes('\0') ? undefined : argument;
  } catch {
    return undefined;
  }
}

/**
 * The schema of arguments that a service adds, such as the dates of a stay. It is a `z.object` whose fields accept text
 * and are optional, and may be followed by a transform. To compare arguments with each other, use `refine`,
 * `superRefine` or the transform, and set the `path` of each issue to the invalid argument.
 */
export type ExtraSchema<Extra> = ObjectSchema & z.ZodType<Extra>;

/** A schema with a transform has the object schema in `in`. */
type ObjectSchema = z.ZodObject | { readonly in: z.ZodObject };

export function argumentsIn(schema: ObjectSchema): z.ZodRawShape {
  return 'in' in schema ? schema.in.shape : schema.shape;
}

export interface ExtraArguments<Extra> {
  readonly names: readonly string[];
  /** The schema's output when no arguments are given. */
  readonly defaults: Extra;
  /** Parses all extra arguments together. Adds any faults to `faults` and then returns undefined. */
  readonly read: (texts: Readonly<Record<string, string>>, faults: Fault[]) => Extra | undefined;
}

/** Call it at startup: it throws a ZodError if the schema does not accept an empty object. */
export function createExtraArguments<Extra>(schema: ExtraSchema<Extra>): ExtraArguments<Extra> {
  return Object.freeze({
    names: Object.freeze(Object.keys(argumentsIn(schema))),
    defaults: schema.parse({}) as Extra,
    read(texts: Readonly<Record<string, string>>, faults: Fault[]) {
      const result = schema.safeParse(texts, { error: describeIssue });
      if (result.success) return result.data as Extra;
      for (const { path, message } of result.error.issues) {
        faults.push(queryFault(String(path[0] ?? ''), message));
      }
      return undefined;
    },
  });
}

function decode(text: string): string {
  return decodeURIComponent(text.replaceAll('+', ' '));
}

function findSizeFault(length: number, parts: readonly string[]): Fault | undefined {
  if (length > searchLengthMax) return longQueryFault(searchLengthMax);
  if (parts.length > argumentsMax) return queryFault('', `The query has more than ${argumentsMax} arguments.`);
  return undefined;
}

function encodingFault(part: string): string {
  return `${quoteShort(part)} is not percent-encoded UTF-8 text without NUL`;
}

/** Reports a repeated argument only once, when it occurs for the second time. */
function faultOf(
  { name, value }: Argument,
  values: ReadonlyMap<string, string>,
  repeated: Set<string>,
): string | undefined {
  if (repeated.has(name)) return undefined;
  if (values.has(name)) {
    repeated.add(name);
    return 'is given more than once';
  }
  return value === '' ? 'has no value' : undefined;
}
