/** Configuration errors: converts zod issues into messages with remedies, and formats errors for a terminal. */
import { isAbsolute, relative } from 'node:path';
import type * as z from 'zod';
import { codeOf, formatSource, messageOf, type Source, statementOf, type TypeNames, truncate } from '#foundation';
import { quote, withoutSecrets } from './quote.ts';

/** Describes an invalid part of the configuration and how to correct it. */
export interface ConfigurationError {
  readonly source: Source;
  /** The name of the record, such as `Mapping orders`. Undefined when the error concerns the whole file. */
  readonly record?: string | undefined;
  readonly message: string;
  /** A second location that the message refers to, such as the record that already has the name. */
  readonly other?: Source | undefined;
  readonly remedy: string;
}

/**
 * `message` continues a sentence that starts with the field's name: `prefix "x" does not start with "/"`. Message and
 * remedy appear in logs and diagnostics. They never contain the value of a header, query parameter or descriptor, and
 * they contain other text of the configuration only in the form that `quote` returns.
 */
export interface Fault {
  readonly message: string;
  readonly remedy: string;
}

export interface PlacedFault extends Fault {
  readonly path: readonly PropertyKey[];
}

/** A document as a plain value, with the line of each of its parts. */
export interface ConfigDocument {
  readonly value: unknown;
  readonly file: string;
  /** Returns the line of the part at `path`, or of the deepest part on the path that exists. */
  readonly lineAt: (path: readonly PropertyKey[]) => number;
  /** Returns the place of the text inside the string at `path`. */
  readonly placeWithin: (path: readonly PropertyKey[], record: string) => Place;
  /** The Kubernetes namespace of the manifest whose annotation contains the document. */
  readonly namespace?: unknown;
  /** Faults found before the document was translated, for parts that the value no longer contains. */
  readonly faults?: readonly PlacedFault[] | undefined;
}

/** The origin of a text. `lineOf` converts a line of the text to a line of the file. */
export interface Place {
  readonly file: string;
  readonly lineOf: (line: number) => number;
  /** The record that the text belongs to, for messages. */
  readonly record?: string | undefined;
}

/** A valid value for each field, by its name: `prefix: '/v1/orders'`. */
export type Examples = Readonly<Record<string, string>>;

/**
 * Converts zod's issues about `value` to faults. Omits those that an unknown key explains: the missing key that it was
 * meant to be, and faults of the map that looks incomplete without that key. `whole` names the value itself.
 */
export function faultsOf(
  error: z.ZodError,
  value: unknown,
  examples: Examples,
  whole = 'the document',
): readonly PlacedFault[] {
  const unknown = unknownKeysOf(error, value, examples);
  const explained = new Set(unknown.flatMap(({ explains }) => explains.map(pathText)));
  const others = error.issues.filter(({ code }) => code !== 'unrecognized_keys');
  const kept = others.filter((issue) => {
    const isSecondary = isMissing(issue, value) || issue.code === 'custom' || valueAt(value, issue.path) === null;
    return !isSecondary || !explained.has(pathText(issue.path));
  });
  return [...unknown.map(({ fault }) => fault), ...kept.map((issue) => faultOf(issue, value, { examples, whole }))];
}

/** Converts the faults of a document to errors. `record` is its name, such as `Mapping orders`. */
export function errorsOf(
  document: ConfigDocument,
  faults: readonly PlacedFault[],
  record: string | undefined,
): readonly ConfigurationError[] {
  return faults.map(({ path, message, remedy }) => ({
    source: { file: document.file, line: document.lineAt(path) },
    record,
    message,
    remedy,
  }));
}

/** An error of a whole file or directory, or of one line. */
export function fileError(file: string, message: string, remedy: string, line = 0): ConfigurationError {
  return { source: { file, line }, message, remedy };
}

/** Formats each error on two lines. Shortens the absolute names of files in `workingDirectory`. */
export function formatErrors(errors: readonly ConfigurationError[], workingDirectory: string): string {
  return errors.map((error) => formatError(error, workingDirectory)).join('\n');
}

function formatError({ source, record, message, other, remedy }: ConfigurationError, workingDirectory: string): string {
  const place = (where: Source) => formatPlace(where, workingDirectory);
  const second = other === undefined ? '' : ` (${place(other)})`;
  const subject = record === undefined ? '' : `${record}: `;
  return `${place(source)}  ${subject}${message}${second}\n    ${remedy}`;
}

/** Shortens the name of a file in `workingDirectory`. */
export function formatPlace({ file, line }: Source, workingDirectory: string): string {
  return formatSource({ file: shortened(file, workingDirectory), line });
}

/** Shortens the absolute name of a file in `workingDirectory`. */
export function shortened(file: string, workingDirectory: string): string {
  const name = relative(workingDirectory, file) || '.';
  return isAbsolute(file) && !name.startsWith('..') ? name : file;
}

/** Formats a path like `labels.gateway[0].user[0]`. */
function pathText(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`;
    const name = truncate(withoutSecrets(String(key)), nameCharactersMax);
    return text === '' ? name : `${text}.${name}`;
  }, '');
}

/** A long key of a map would be in each message about what the map contains. */
const nameCharactersMax = 120;

type Issue = z.core.$ZodIssue;

interface Words {
  readonly examples: Examples;
  readonly whole: string;
}

function faultOf(issue: Issue, value: unknown, { examples, whole }: Words): PlacedFault {
  const { path } = issue;
  const remedy: unknown = issue.code === 'custom' ? issue.params?.['remedy'] : undefined;
  return {
    path,
    message: `${pathText(path) || whole} ${isMissing(issue, value) ? 'is missing' : messageAbout(issue, value)}`,
    remedy: typeof remedy === 'string' ? remedy : remedyFor(issue, valueAt(value, path), exampleOf(path, examples)),
  };
}

/** Says how to write a value of another type, and otherwise shows an example. Shows no value but true and false. */
function remedyFor(issue: Issue, given: unknown, example: string): string {
  if (issue.code !== 'invalid_type') return example;
  const name = String(issue.path.at(-1));
  switch (issue.expected) {
    case 'boolean': {
      const meant = booleans.get(typeof given === 'string' ? given.toLowerCase() : given);
      return meant === undefined ? example : `Write ${name}: ${meant}`;
    }
    case 'number':
      return typeof given === 'string' && /^-?\d+$/.test(given) ? 'Remove the quotes.' : example;
    case 'string':
      return `${typeof given === 'number' || typeof given === 'boolean' ? inQuotes : oneByOne(issue, given)}${example}`;
    default:
      return example;
  }
}

const inQuotes = 'Put it in quotes if it is meant as text. ';

/** A field of a record can have other values in other records. */
function oneByOne({ path }: Issue, given: unknown): string {
  return Array.isArray(given) && path.length === 1 ? 'Write one value, and a record for each of the others. ' : '';
}

/** What YAML 1.1 and other formats read as true and false. */
const booleans: ReadonlyMap<unknown, boolean> = new Map([
  ...['true', 'yes', 'on', 'y', '1', 1].map((written) => [written, true] as const),
  ...['false', 'no', 'off', 'n', '0', 0].map((written) => [written, false] as const),
]);

/** Returns the message that follows the field's name. */
function messageAbout(issue: Issue, value: unknown): string {
  switch (issue.code) {
    case 'custom':
      return issue.message;
    case 'invalid_key':
      return `as a key ${issue.issues[0]?.message ?? 'is not allowed'}`;
    case 'invalid_type':
      return `${statementOf(issue, yamlTypes)}, not ${typeName(valueAt(value, issue.path))}`;
    default:
      return statementOf(issue, yamlTypes);
  }
}

const yamlTypes: TypeNames = {
  string: 'a string',
  number: 'a number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a map',
  record: 'a map',
};

interface UnknownKey {
  readonly fault: PlacedFault;
  /** The missing or incomplete parts that are as they are because of this key. */
  readonly explains: readonly (readonly PropertyKey[])[];
}

function unknownKeysOf({ issues }: z.ZodError, value: unknown, examples: Examples): readonly UnknownKey[] {
  const allMissing = missingKeysOf(issues, value);
  return issues.flatMap((issue) => {
    if (issue.code !== 'unrecognized_keys') return [];
    const { path, message, keys } = issue;
    const missing = allMissing.get(pathText(path)) ?? [];
    const map = { path, known: parseKnownKeys(message), missing, value: valueAt(value, path), examples };
    return keys.map((key) => unknownKey(key, { ...map, isOnly: keys.length === 1 }));
  });
}

/** Returns the missing keys of each map by the text of its path. */
function missingKeysOf(issues: readonly Issue[], value: unknown): ReadonlyMap<string, readonly string[]> {
  const keys = new Map<string, string[]>();
  for (const issue of issues) {
    if (!isMissing(issue, value)) continue;
    const map = pathText(issue.path.slice(0, -1));
    const name = String(issue.path.at(-1));
    const known = keys.get(map);
    if (known === undefined) keys.set(map, [name]);
    else known.push(name);
  }
  return keys;
}

interface MapAround {
  readonly path: readonly PropertyKey[];
  readonly known: readonly KnownKey[];
  readonly missing: readonly string[];
  readonly value: unknown;
  readonly examples: Examples;
  /** Whether it is the only unknown key of its map. */
  readonly isOnly: boolean;
}

/**
 * Finds out what an unknown key was meant to be: a mistyped field, a field of a map inside, a map around fields, a field
 * of the record, or the only field that is missing.
 */
function unknownKey(key: string, map: MapAround): UnknownKey {
  const { path, known, missing, examples } = map;
  const names = known.map(({ name }) => name);
  const near = suggestion(key, names);
  const isPart = near?.endsWith(`_${key}`) === true;
  if (near !== undefined && !isPart) return mistyped(key, near, map);
  const outer = known.find(({ inner }) => inner.includes(key))?.name;
  if (outer !== undefined)
    return described(
      key,
      map,
      `: it is a field of ${outer}`,
      `Move it into ${outer}. ${exampleOf([outer], examples)}`,
      [outer],
    );
  const held = heldFields(valueAt(map.value, [key]), names);
  if (held.length > 0)
    return described(
      key,
      map,
      `, which contains ${held.join(' and ')}`,
      `Write ${held.join(' and ')} without it, one level up.`,
      held,
    );
  if (path.length > 0 && near === undefined && Object.hasOwn(examples, key))
    return described(key, map, '', `Move it out of ${pathText(path)}, one level up or more.`);
  const [absent] = missing;
  if (map.isOnly && absent !== undefined && missing.length === 1)
    return described(
      key,
      map,
      didYouMean(absent, [absent]),
      `Write "${absent}", which is missing, or remove it. ${exampleOf([...path, absent], examples)}`,
      [absent],
    );
  return near === undefined ? described(key, map, '', `Remove it; ${knownKeys(names)}.`) : mistyped(key, near, map);
}

function mistyped(key: string, meant: string, map: MapAround): UnknownKey {
  return described(key, map, didYouMean(meant, [meant]), `Write "${meant}", or remove it.`, [meant]);
}

function described(
  key: string,
  { path }: MapAround,
  guess: string,
  remedy: string,
  explains: readonly string[] = [],
): UnknownKey {
  const where = path.length === 0 ? '' : ` in ${pathText(path)}`;
  const message = `unknown key ${quote(key)}${where}${guess}`;
  return {
    fault: { path: [...path, key], message, remedy },
    explains: [path, ...explains.map((name) => [...path, name])],
  };
}

/** Returns the known fields in a map, which were probably meant to be one level up. */
function heldFields(value: unknown, known: readonly string[]): readonly string[] {
  return typeName(value) === 'a map' ? Object.keys(Object(value)).filter((name) => known.includes(name)) : [];
}

/** A field of a map, with the fields of the map that it accepts. */
interface KnownKey {
  readonly name: string;
  readonly inner: readonly string[];
}

/** Zod passes on nothing about a map but a message, which therefore is the text of its known keys. */
export function formatKnownKeys(known: readonly KnownKey[]): string {
  return known.map(({ name, inner }) => [name, ...inner].join(',')).join(' ');
}

function parseKnownKeys(text: string): readonly KnownKey[] {
  return text.split(' ').map((one) => {
    const [name = '', ...inner] = one.split(',');
    return { name, inner };
  });
}

/** Lists the known keys, unless the list would be so long that it hides the message. */
function knownKeys(known: readonly string[]): string {
  return known.length > 20 ? 'config/README.md lists the fields' : `the known keys are ${known.join(', ')}`;
}

function isMissing(issue: Issue, value: unknown): boolean {
  if (issue.path.length === 0 || issue.code === 'custom' || valueAt(value, issue.path) !== undefined) return false;
  // The items of a comma-separated text are not in the original value, so they are not missing.
  return typeof valueAt(value, issue.path.slice(0, -1)) === 'object';
}

/** Returns the part of a plain value at `path`, or undefined when there is none. */
export function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (inner, key) => (typeof inner === 'object' && inner !== null ? Reflect.get(inner, key) : undefined),
    value,
  );
}

/** The example of the innermost field on the path that has one. For the whole value, that of its first field. */
function exampleOf(path: readonly PropertyKey[], examples: Examples): string {
  const [first] = Object.keys(examples);
  const key =
    path.length === 0 ? first : path.findLast((part) => typeof part === 'string' && Object.hasOwn(examples, part));
  return typeof key === 'string'
    ? `For example: ${key}: ${examples[key]}`
    : 'Correct the value. Put text in quotes if YAML could read it as another type.';
}

/** Names the type of a value, never the value itself, which may be a misplaced password. */
export function typeName(value: unknown): string {
  if (value === null || value === undefined) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
  return typeof value === 'object' ? typeNameOfObject(value) : `a ${typeof value}`;
}

/** Names other objects too, because a program's own YAML parser may produce a `Date`. */
function typeNameOfObject(value: object): string {
  const [, name] = /^\[object (.*)\]$/.exec(Object.prototype.toString.call(value)) ?? [];
  return name === 'Object' ? 'a map' : `a ${name}`;
}

/** Returns the end of a sentence, such as `, did you mean "prefix"?`, or an empty string. */
export function didYouMean(mistyped: string, known: Iterable<string>): string {
  const name = suggestion(mistyped, known);
  return name === undefined ? '' : `, did you mean ${quote(name)}?`;
}

/** Returns the most similar known name, if one is similar enough or is a longer form (`timeout_ms` for `timeout`). */
export function suggestion(mistyped: string, known: Iterable<string>): string | undefined {
  const slack = slackOf(mistyped);
  const near: { readonly name: string; readonly distance: number }[] = [];
  for (const name of known) {
    // Skips the computation, which is slow for long keys, when the lengths already differ too much.
    if (Math.abs(name.length - mistyped.length) > slack && !isLonger(name, mistyped)) continue;
    const distance = editDistance(mistyped.toLowerCase(), name.toLowerCase());
    if (distance <= slack || isLonger(name, mistyped)) near.push({ name, distance });
  }
  return near.sort((a, b) => a.distance - b.distance)[0]?.name;
}

/**
 * Allows one typing mistake in a short word and two in a longer one. With fewer than three letters, any name would
 * match.
 */
function slackOf(name: string): number {
  if (name.length < 3) return 0;
  return name.length < 6 ? 1 : 2;
}

function isLonger(name: string, mistyped: string): boolean {
  return mistyped.length >= 4 && (name.startsWith(`${mistyped}_`) || name.endsWith(`_${mistyped}`));
}

/** Counts the letters inserted, deleted, replaced or swapped with their neighbour (optimal string alignment). */
export function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const replaced = cell(last, column - 1) + (a[row - 1] === b[column - 1] ? 0 : 1);
      const isSwap = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      const swapped = isSwap ? cell(before, column - 2) + 1 : Number.POSITIVE_INFINITY;
      current.push(Math.min(replaced, swapped, cell(last, column) + 1, cell(current, column - 1) + 1));
    }
    before = last;
    last = current;
  }
  return cell(last, b.length);
}

function cell(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}

/** Returns an Error for the terminal. `remedy` is for missing permissions: errors of the disk have their own. */
export function writeError(path: string, cause: unknown, remedy: string): Error {
  const code = codeOf(cause) || messageOf(cause);
  return new Error(`cannot write ${path} (${code}): ${diskRemedies[code] ?? remedy}`, { cause });
}

const diskRemedies: Readonly<Record<string, string>> = {
  ENOSPC: 'free some space on its disk',
  EDQUOT: "free some of this user's disk quota",
  EROFS: 'its file system is read-only: remount it as writable, or use a directory on another one',
};
