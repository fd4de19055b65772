/** A search string as named arguments, the rules for all of them, and arguments that a service adds. */
import type { z } from 'zod';
import { describeIssue, type Fault, longQueryFault, problem, queryFault, quote } from '#http';

/** Text as a value, or what is wrong with it. */
export type Parsed<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly detail: string };

/** Longer searches are refused as a whole. */
const searchLengthMax = 4096;
const argumentsMax = 32;

/** The part of a search between two `&`, decoded. */
export interface Argument {
  readonly name: string;
  readonly value: string;
}

/**
 * The arguments of a search string, with or without its `?`. Malformed, repeated and empty ones go to `faults` and not
 * into the map.
 */
export function readArguments(search: string, faults: Fault[]): ReadonlyMap<string, string> {
  const parts = splitSearch(search);
  const excess = excessOf(search.length - (search.startsWith('?') ? 1 : 0), parts);
  if (excess !== undefined) {
    faults.push(excess);
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

/** Throws one problem with all faults, if there are any. */
export function throwFaults(faults: readonly Fault[]): void {
  if (faults.length > 0) throw problem('bad-argument', { errors: faults });
}

export function unknownArgument(name: string, known: Iterable<string>): string {
  return `${quote(name)} is no argument here; known: ${[...known].join(', ')}`;
}

/** The raw parts of a search string, in the client's order. */
export function splitSearch(search: string): string[] {
  const text = search.startsWith('?') ? search.slice(1) : search;
  return text === '' ? [] : text.split('&').filter((part) => part !== '');
}

/**
 * `a+b=c%20d` is `a b` with value `c d` (application/x-www-form-urlencoded); without `=` the value is empty. Undefined
 * for broken percent-encoding.
 */
export function parseArgument(part: string): Argument | undefined {
  // A URL cannot carry other bytes unencoded (RFC 3986 section 2); by now it is unknown what they meant.
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
 * Arguments that a service adds, such as the dates of a stay: a `z.object` whose fields take text and are optional, with
 * a transform after it if their value is to be something else. It may compare them with `refine`, `superRefine` or in the
 * transform; the `path` of an issue names the argument at fault.
 */
export type ExtraSchema<Extra> = ObjectSchema & z.ZodType<Extra>;

/** `in`: the object, where a transform follows it. */
type ObjectSchema = z.ZodObject | { readonly in: z.ZodObject };

export function argumentsIn(schema: ObjectSchema): z.ZodRawShape {
  return 'in' in schema ? schema.in.shape : schema.shape;
}

export interface ExtraArguments<Extra> {
  readonly names: readonly string[];
  /** The schema's output for no arguments. */
  readonly defaults: Extra;
  /** Parses all of them together. Undefined if there are faults, which are added. */
  readonly read: (texts: Readonly<Record<string, string>>, faults: Fault[]) => Extra | undefined;
}

/** Throws a ZodError at once if the schema does not accept an empty object. */
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

function excessOf(length: number, parts: readonly string[]): Fault | undefined {
  if (length > searchLengthMax) return longQueryFault(searchLengthMax);
  if (parts.length > argumentsMax) return queryFault('', `The query has more than ${argumentsMax} arguments.`);
  return undefined;
}

function encodingFault(part: string): string {
  return `${quote(part)} is not percent-encoded UTF-8 text without NUL`;
}

/** Reports a repeated argument once, at its second value. */
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
