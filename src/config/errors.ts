/** What a configuration error is and how it reads: zod's issues as messages with a remedy, "did you mean", and the text for a terminal. */
import { isAbsolute, relative } from 'node:path';
import type * as z from 'zod';
import { quote, withoutSecrets } from './quote.ts';

/** Where a piece of configuration is written. Lines count from 1. */
export interface Source {
  readonly file: string;
  readonly line: number;
}

/** Something in the configuration that cannot be used, and how to correct it. */
export interface ConfigurationError {
  readonly source: Source;
  /** For example `Mapping hotel`; undefined when the whole file is at fault. */
  readonly record: string | undefined;
  readonly message: string;
  /** A second place that the message refers to, such as the record that already has the name. */
  readonly other?: Source | undefined;
  readonly remedy: string;
  /** True: the rest can be served from the start, because the requests of this Mapping are blocked or need no guard. */
  readonly isContained?: boolean | undefined;
}

/**
 * `message` continues the field's name: `prefix "x" does not start with "/"`. It goes to logs and diagnostics, so it never
 * holds the value of a header, a query parameter or a descriptor, and other texts of the configuration only as `quote`
 * returns them. So does `remedy`.
 */
export interface Fault {
  readonly message: string;
  readonly remedy: string;
}

export interface PlacedFault extends Fault {
  readonly path: readonly PropertyKey[];
}

/** A document as a plain value that knows the line of each of its parts. */
export interface ConfigDocument {
  readonly value: unknown;
  readonly file: string;
  /** A path that ends nowhere counts as the deepest part that exists. */
  readonly lineAt: (path: readonly PropertyKey[]) => number;
  /** The place of the text inside the string at `path`. */
  readonly placeWithin: (path: readonly PropertyKey[], record: string) => Place;
}

/** Where a text comes from: `lineOf` turns a line of the text into a line of the file. */
export interface Place {
  readonly file: string;
  readonly lineOf: (line: number) => number;
  /** The record that the text belongs to, for messages. */
  readonly record?: string | undefined;
}

/** How a field is written, by its name: `prefix: '/v1/hotels'`. */
export type Examples = Readonly<Record<string, string>>;

/** zod's issues about `value` as faults. Leaves out what an unknown key explains: the missing key it was meant for, and a map that looks incomplete because of it. */
export function faultsOf(error: z.ZodError, value: unknown, examples: Examples): readonly PlacedFault[] {
  const explained = new Set(error.issues.flatMap(explains));
  return error.issues.flatMap((issue) => {
    if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => unknownKey(issue, key));
    const secondary = isMissing(issue, value) || issue.code === 'custom';
    return secondary && explained.has(pathText(issue.path)) ? [] : [faultOf(issue, value, examples)];
  });
}

/** The faults of a document as errors; `record` names it, for example `Mapping hotel`. */
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

/** Two lines for each error. Shows absolute file names relative to `workingDirectory`. */
export function formatErrors(errors: readonly ConfigurationError[], workingDirectory: string): string {
  return errors.map((error) => formatError(error, workingDirectory)).join('\n');
}

function formatError({ source, record, message, other, remedy }: ConfigurationError, workingDirectory: string): string {
  const place = (where: Source) => formatPlace(where, workingDirectory);
  const second = other === undefined ? '' : ` (${place(other)})`;
  const subject = record === undefined ? '' : `${record}: `;
  return `${place(source)}  ${subject}${message}${second}\n    ${remedy}`;
}

function formatPlace({ file, line }: Source, workingDirectory: string): string {
  return `${isAbsolute(file) ? relative(workingDirectory, file) : file}:${line}`;
}

/** `labels.gateway[0].user[0]`. */
function pathText(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`;
    const name = withoutSecrets(String(key));
    return text === '' ? name : `${text}.${name}`;
  }, '');
}

type Issue = z.core.$ZodIssue;

function faultOf(issue: Issue, value: unknown, examples: Examples): PlacedFault {
  const { path } = issue;
  const subject = pathText(path) || 'the document';
  const own: unknown = issue.code === 'custom' ? issue.params?.['remedy'] : undefined;
  return {
    path,
    message: `${subject} ${isMissing(issue, value) ? 'is missing' : statementOf(issue, value)}`,
    remedy: typeof own === 'string' ? own : writeIt(path, examples),
  };
}

/** The message after the field's name. */
function statementOf(issue: Issue, value: unknown): string {
  switch (issue.code) {
    case 'custom':
      return issue.message;
    case 'invalid_type':
      return `must be ${expectedNames[issue.expected] ?? issue.expected}, not ${nameOf(valueAt(value, issue.path))}`;
    case 'invalid_value':
      return `must be ${issue.values.map((one) => JSON.stringify(one)).join(' or ')}`;
    case 'invalid_key':
      return `as a key ${issue.issues[0]?.message ?? 'is not allowed'}`;
    default:
      return 'cannot be used';
  }
}

function unknownKey({ path, message }: Issue, key: string): PlacedFault {
  const known = message.split(' ');
  const where = path.length === 0 ? '' : ` in ${pathText(path)}`;
  const meant = suggestion(key, known);
  return {
    path: [...path, key],
    message: `unknown key ${quote(key)}${where}${didYouMean(key, known)}`,
    remedy: meant === undefined ? `Remove it; ${knownKeys(known)}.` : `Write "${meant}", or remove it.`,
  };
}

/** A long list would bury the message. */
function knownKeys(known: readonly string[]): string {
  return known.length > 20 ? 'config/README.md lists the fields' : `the known keys are ${known.join(', ')}`;
}

/** The paths of the keys that were meant, and of the map that contains the unknown keys. */
function explains(issue: Issue): readonly string[] {
  if (issue.code !== 'unrecognized_keys') return [];
  const meant = issue.keys.flatMap((key) => suggestion(key, issue.message.split(' ')) ?? []);
  return [pathText(issue.path), ...meant.map((key) => pathText([...issue.path, key]))];
}

function isMissing(issue: Issue, value: unknown): boolean {
  if (issue.path.length === 0 || issue.code === 'custom' || valueAt(value, issue.path) !== undefined) return false;
  // The parts of a text with commas are not in the value.
  return typeof valueAt(value, issue.path.slice(0, -1)) === 'object';
}

/** The part of a plain value at `path`; undefined when there is none. */
export function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (inner, key) => (typeof inner === 'object' && inner !== null ? Reflect.get(inner, key) : undefined),
    value,
  );
}

function writeIt(path: readonly PropertyKey[], examples: Examples): string {
  const key = path.findLast((part) => typeof part === 'string' && Object.hasOwn(examples, part));
  return typeof key === 'string'
    ? `For example: ${key}: ${examples[key]}`
    : 'Correct the value; text that looks like something else goes in quotes.';
}

const expectedNames: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a map',
  record: 'a map',
};

/** The type and never the value, which may be a password in the wrong place. */
export function nameOf(value: unknown): string {
  if (value === null || value === undefined) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
  return typeof value === 'object' ? nameOfObject(value) : `a ${typeof value}`;
}

/** Some readers of YAML make a `Date` of a date. */
function nameOfObject(value: object): string {
  const [, name] = /^\[object (.*)\]$/.exec(Object.prototype.toString.call(value)) ?? [];
  return name === 'Object' ? 'a map' : `a ${name}`;
}

/** For the end of a sentence: `, did you mean "prefix"?`, or nothing. */
export function didYouMean(mistyped: string, known: Iterable<string>): string {
  const name = suggestion(mistyped, known);
  return name === undefined ? '' : `, did you mean ${quote(name)}?`;
}

/** The nearest of `known`, or undefined when none is near. A longer name (`timeout_ms` for `timeout`) is near as well. */
export function suggestion(mistyped: string, known: Iterable<string>): string | undefined {
  const slack = slackOf(mistyped);
  const near: { readonly name: string; readonly distance: number }[] = [];
  for (const name of known) {
    // The distance is at least the difference in length, and takes long to compute for a long key.
    if (Math.abs(name.length - mistyped.length) > slack && !isLonger(name, mistyped)) continue;
    const distance = editDistance(mistyped.toLowerCase(), name.toLowerCase());
    if (distance <= slack || isLonger(name, mistyped)) near.push({ name, distance });
  }
  return near.sort((a, b) => a.distance - b.distance)[0]?.name;
}

/** One slip in a short word, two in a longer one; with fewer than three letters every name would be near. */
function slackOf(name: string): number {
  if (name.length < 3) return 0;
  return name.length < 6 ? 1 : 2;
}

function isLonger(name: string, mistyped: string): boolean {
  return mistyped.length >= 4 && (name.startsWith(`${mistyped}_`) || name.endsWith(`_${mistyped}`));
}

/** Letters inserted, deleted, replaced or swapped with their neighbour (optimal string alignment). */
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

/** The system's code for what a call failed with, such as `ENOENT`; the text of any other error. */
export function systemCode(cause: unknown): string {
  return cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause);
}

/** For a terminal. `remedy` is for one who may not write there. */
export function notWritten(path: string, cause: unknown, remedy: string): Error {
  const code = systemCode(cause);
  return new Error(`cannot write ${path} (${code}): ${diskRemedies[code] ?? remedy}`, { cause });
}

const diskRemedies: Readonly<Record<string, string>> = {
  ENOSPC: 'make room on its disk',
  EDQUOT: "make room in this user's quota of the disk",
  EROFS: 'its file system is read-only: mount it for writing, or name a directory of another one',
};
