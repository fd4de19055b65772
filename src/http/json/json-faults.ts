/** Finds what is wrong with JSON text: its first syntax error, and the members of objects that have the same name. */

export interface JsonFaults {
  readonly syntax: SyntaxFault | undefined;
  /** The path of each member whose name an earlier member of its object has. Names are compared without escapes. */
  readonly repeated: readonly Path[];
}

/** The text itself is not part of it, because it may contain secrets. */
export interface SyntaxFault {
  /** What must be at this position, such as `a value`. */
  readonly expected: string;
  /** The first line is 1. */
  readonly line: number;
  /** The first character of a line is 1. */
  readonly column: number;
}

/** Follows the grammar of RFC 8259. Recurses as deep as the text is nested, which the caller must have bounded. */
export function findJsonFaults(text: string): JsonFaults {
  const scan: Scan = { text, index: 0, expected: '', repeated: [] };
  if (readValue(scan, [])) {
    take(scan, space);
    if (scan.index < text.length) fail(scan, 'the end of the text');
  }
  const { index, expected, repeated } = scan;
  return { syntax: expected === '' ? undefined : { expected, ...placeOf(text, index) }, repeated };
}

interface Scan {
  readonly text: string;
  /** The next character to read. */
  index: number;
  /** Empty until there is a syntax error. */
  expected: string;
  readonly repeated: Path[];
}

type Path = readonly (string | number)[];

const space = /[ \t\n\r]*/y;
const scalar = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
/** A string without its closing quote, up to the first character that is not allowed. */
const openString = /"[ !#-[\]-\uffff]*(?:\\(?:["\\/bfnrt]|u[\da-fA-F]{4})[ !#-[\]-\uffff]*)*/y;

/** Returns false at a syntax error, like all functions that read. */
function readValue(scan: Scan, path: Path): boolean {
  if (skip(scan, '{')) return skip(scan, '}') || readMembers(scan, path);
  if (skip(scan, '[')) return skip(scan, ']') || readItems(scan, path);
  if (scan.text[scan.index] === '"') return readString(scan) !== undefined;
  return take(scan, scalar) !== '' || fail(scan, 'a value');
}

function readMembers(scan: Scan, path: Path): boolean {
  const names = new Set<string>();
  do {
    if (!readMember(scan, path, names)) return false;
  } while (skip(scan, ','));
  return skip(scan, '}') || fail(scan, 'a comma or a closing brace');
}

function readMember(scan: Scan, path: Path, names: Set<string>): boolean {
  take(scan, space);
  if (scan.text[scan.index] !== '"') return fail(scan, 'a name in double quotes');
  const name = readString(scan);
  if (name === undefined) return false;
  const member = [...path, name];
  if (names.has(name)) scan.repeated.push(member);
  names.add(name);
  return skip(scan, ':') ? readValue(scan, member) : fail(scan, 'a colon');
}

function readItems(scan: Scan, path: Path): boolean {
  let item = 0;
  do {
    if (!readValue(scan, [...path, item])) return false;
    item += 1;
  } while (skip(scan, ','));
  return skip(scan, ']') || fail(scan, 'a comma or a closing bracket');
}

/** Returns the string without its quotes and escapes. */
function readString(scan: Scan): string | undefined {
  const content = take(scan, openString);
  const next = scan.text[scan.index];
  if (next === '"') {
    scan.index += 1;
    return JSON.parse(`${content}"`) as string;
  }
  if (next === undefined) fail(scan, 'a closing quote');
  else fail(scan, next === '\\' ? 'a valid escape' : 'an escape instead of a control character');
  return undefined;
}

/** Skips white space, and the character if it follows. */
function skip(scan: Scan, character: string): boolean {
  take(scan, space);
  const follows = scan.text[scan.index] === character;
  if (follows) scan.index += 1;
  return follows;
}

function take(scan: Scan, pattern: RegExp): string {
  pattern.lastIndex = scan.index;
  const [taken = ''] = pattern.exec(scan.text) ?? [];
  scan.index += taken.length;
  return taken;
}

function fail(scan: Scan, expected: string): false {
  scan.expected = expected;
  return false;
}

function placeOf(text: string, index: number): Pick<SyntaxFault, 'line' | 'column'> {
  const lines = text.slice(0, index).split(/\r\n|\r|\n/);
  return { line: lines.length, column: [...(lines.at(-1) ?? '')].length + 1 };
}
