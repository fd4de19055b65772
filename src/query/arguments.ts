/** A URL's search string as named arguments, and the rules that hold for every argument whatever its name. */
import { type Fault, problem } from '#http';

/** Longer searches are refused whole. */
const searchLengthMax = 4096;
const argumentsMax = 32;

/** The part of a search between two `&`, decoded; undefined if its percent-encoding is broken. */
export interface Argument {
  readonly name: string;
  readonly value: string;
}

/**
 * The arguments of a search string, with or without its `?`. What is malformed, repeated or empty goes to `faults`
 * and not into the map.
 */
export function readArguments(search: string, faults: Fault[]): ReadonlyMap<string, string> {
  const parts = splitSearch(search);
  const excess = excessOf(search, parts);
  if (excess !== undefined) {
    faults.push({ pointer: '#/query', detail: excess });
    return new Map();
  }
  const values = new Map<string, string>();
  const repeated = new Set<string>();
  for (const part of parts) {
    const argument = parseArgument(part);
    const detail = argument === undefined ? encodingDetail(part) : faultOf(argument, values, repeated);
    if (detail !== undefined) faults.push({ pointer: pointerTo(argument?.name), detail });
    if (argument !== undefined) values.set(argument.name, argument.value);
  }
  return new Map([...values].filter(([name, value]) => value !== '' && !repeated.has(name)));
}

/** Throws the one problem that tells all faults, if there is any. */
export function throwFaults(faults: readonly Fault[]): void {
  if (faults.length > 0) throw problem('bad-argument', { errors: faults });
}

/** The raw parts of a search string, in the client's order. */
export function splitSearch(search: string): string[] {
  const text = search.startsWith('?') ? search.slice(1) : search;
  return text === '' ? [] : text.split('&').filter((part) => part !== '');
}

/** `a+b=c%20d` is `a b` with value `c d` (application/x-www-form-urlencoded); without `=` the value is empty. */
export function parseArgument(part: string): Argument | undefined {
  // Bytes that a URL may not carry bare (RFC 3986, section 2) have already lost their meaning on the way here.
  if (!/^[\x21-\x7e]*$/.test(part)) return undefined;
  const equals = part.indexOf('=');
  const [name, value] = equals < 0 ? [part, ''] : [part.slice(0, equals), part.slice(equals + 1)];
  try {
    const argument = { name: decode(name), value: decode(value) };
    // PostgreSQL cannot hold a NUL in text, and nothing of ours has one.
    return `${argument.name}${argument.value}`.includes('\0') ? undefined : argument;
  } catch {
    return undefined;
  }
}

/** `#/query/limit`: a JSON pointer as a URI fragment (RFC 6901, section 6). */
export function pointerTo(name: string | undefined): string {
  if (name === undefined) return '#/query';
  return `#/query/${encodeURIComponent(shorten(name).replaceAll('~', '~0').replaceAll('/', '~1'))}`;
}

/** What a client sent, fit to be said back to it. */
export function quote(text: string): string {
  return JSON.stringify(shorten(text));
}

function shorten(text: string): string {
  const characters = [...text];
  return characters.length <= 40 ? text : `${characters.slice(0, 40).join('')}…`;
}

function decode(text: string): string {
  return decodeURIComponent(text.replaceAll('+', ' '));
}

function excessOf(search: string, parts: readonly string[]): string | undefined {
  if (search.length > searchLengthMax) return `is longer than ${searchLengthMax} characters`;
  if (parts.length > argumentsMax) return `has more than ${argumentsMax} arguments`;
  return undefined;
}

function encodingDetail(part: string): string {
  return `${quote(part)} is not percent-encoded UTF-8 text without NUL`;
}

/** A repetition is told once, at the second time. */
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
