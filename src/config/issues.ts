/** What zod found, as faults with a path: in our words, each with a remedy, and without those that follow from another. */
import type * as z from 'zod';
import type { ConfigurationError } from './configuration.ts';
import type { Fault } from './fields.ts';
import { didYouMean, suggestion } from './suggest.ts';
import type { PlacedDocument } from './yaml-documents.ts';

export interface PlacedFault extends Fault {
  readonly path: readonly PropertyKey[];
}

/** How a field is written, by its name: `prefix: '/v1/hotels'`. */
export type Examples = Readonly<Record<string, string>>;

/** `value` is what was parsed. What an unknown key explains is left out: the key that was meant, and a map that seems incomplete for it. */
export function faultsOf(error: z.ZodError, value: unknown, examples: Examples): readonly PlacedFault[] {
  const explained = new Set(error.issues.flatMap(explains));
  return error.issues.flatMap((issue) => {
    if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => unknownKey(issue, key));
    const secondary = isMissing(issue, value) || issue.code === 'custom';
    return secondary && explained.has(pathText(issue.path)) ? [] : [faultOf(issue, value, examples)];
  });
}

/** The errors of a document; `record` says what it is, `Mapping hotel`. */
export function errorsOf(
  document: PlacedDocument,
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

/** `labels.gateway[0].user[0]`. */
function pathText(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`;
    return text === '' ? String(key) : `${text}.${String(key)}`;
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

/** What goes behind the name of the field. */
function statementOf(issue: Issue, value: unknown): string {
  switch (issue.code) {
    case 'custom':
      return issue.message;
    case 'invalid_type':
      return `must be ${expectedNames[issue.expected] ?? issue.expected}, not ${nameOf(at(value, issue.path))}`;
    case 'invalid_value':
      return `must be ${issue.values.map((one) => JSON.stringify(one)).join(' or ')}`;
    case 'invalid_key':
      return `as a key ${issue.issues[0]?.message ?? 'is not allowed'}`;
    default:
      return `cannot be used: ${issue.message}`;
  }
}

function unknownKey({ path, message }: Issue, key: string): PlacedFault {
  const known = message.split(' ');
  const where = path.length === 0 ? '' : ` in ${pathText(path)}`;
  const meant = suggestion(key, known);
  return {
    path: [...path, key],
    message: `unknown key "${key}"${where}${didYouMean(key, known)}`,
    remedy: meant === undefined ? `Remove it; ${knownKeys(known)}.` : `Write "${meant}", or remove it.`,
  };
}

/** A long list would hide the message that it stands under. */
function knownKeys(known: readonly string[]): string {
  return known.length > 20 ? "the fields are in README's tables" : `the keys known here are ${known.join(', ')}`;
}

/** The paths of the keys that were meant, and of the map that the unknown keys stand in. */
function explains(issue: Issue): readonly string[] {
  if (issue.code !== 'unrecognized_keys') return [];
  const meant = issue.keys.flatMap((key) => suggestion(key, issue.message.split(' ')) ?? []);
  return [pathText(issue.path), ...meant.map((key) => pathText([...issue.path, key]))];
}

function isMissing(issue: Issue, value: unknown): boolean {
  if (issue.path.length === 0 || issue.code === 'custom' || at(value, issue.path) !== undefined) return false;
  // What a text was split into is not in the value.
  return typeof at(value, issue.path.slice(0, -1)) === 'object';
}

function at(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (inner, key) => (typeof inner === 'object' && inner !== null ? Reflect.get(inner, key) : undefined),
    value,
  );
}

function writeIt(path: readonly PropertyKey[], examples: Examples): string {
  const key = path.findLast((part) => typeof part === 'string' && Object.hasOwn(examples, part));
  return typeof key === 'string'
    ? `Write it so: ${key}: ${examples[key]}`
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

/** The type and never the value: a password can stand where it should not. */
export function nameOf(value: unknown): string {
  if (value === null || value === undefined) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'a map' : `a ${typeof value}`;
}
