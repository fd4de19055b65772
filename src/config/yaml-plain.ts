/** Plain YAML, read fast: what most configurations are written in, and nothing that could be read in two ways. */
import { behindSpaces, type Cursor, closeLine, code, lineEnd, nested, toNextLine } from './yaml-cursor.ts';
import { readFlow } from './yaml-flow.ts';
import { readLiteral } from './yaml-literal.ts';
import { isQuote, plainScalar, quotedScalar, scalarKey, startsPlain } from './yaml-scalars.ts';

/** A literal block: `holder[key]`, whose `|` stands on `line`. */
export interface Literal {
  readonly holder: unknown;
  readonly key: string;
  readonly line: number;
}

export interface PlainDocument {
  /** Null for an empty document. */
  readonly value: unknown;
  /** Of the text, from 1: where the value begins. */
  readonly line: number;
  /** How many the text has. */
  readonly lines: number;
  readonly literals: readonly Literal[];
}

interface BlockCursor extends Cursor {
  readonly literals: Literal[];
}

/**
 * One document, with or without the `---` above it: maps and lists by indentation, plain and quoted scalars on one line,
 * literal blocks, flow collections on one line (over several only as the whole document), comments. Undefined for a text with
 * anything else or with a fault: that is left to the library, which reads all that is read here to the same value.
 */
export function readPlainYaml(text: string): PlainDocument | undefined {
  const cursor: BlockCursor = { text, at: 0, end: -1, indent: -1, line: 0, depth: 0, literals: [] };
  toNextLine(cursor);
  if (text.startsWith('---')) {
    cursor.at = 3;
    cursor.end = lineEnd(text, 0);
    if (!closeLine(cursor)) return undefined;
  }
  const { line, literals } = cursor;
  const value = cursor.indent === -1 ? null : readRoot(cursor);
  // Who meets a line that is indented in another way ends with it, and nobody goes on: the document is not at its end.
  if (value === undefined || cursor.indent !== -1) return undefined;
  return { value, line, lines: cursor.line, literals };
}

/** A flow collection may take several lines here, where no indentation has a say. */
function readRoot(cursor: BlockCursor): unknown {
  const first = cursor.text.charCodeAt(cursor.at);
  if (first !== code.openBrace && first !== code.openBracket) return nested(cursor, readNode);
  cursor.end = cursor.text.length;
  const value = readFlow(cursor);
  cursor.end = lineEnd(cursor.text, cursor.at);
  return closeLine(cursor) ? value : undefined;
}

/** The map or list whose first line the cursor is in; the cursor ends up in the first line that is less indented. */
function readNode(cursor: BlockCursor): unknown {
  return isItem(cursor) ? readList(cursor) : readMap(cursor);
}

function isItem({ text, at, end }: Cursor): boolean {
  return text.charCodeAt(at) === code.dash && isSpaceOrEnd(text, at + 1, end);
}

function readMap(cursor: BlockCursor): unknown {
  const { indent } = cursor;
  const map: Record<string, unknown> = {};
  while (cursor.indent === indent) {
    const key = readKey(cursor);
    // Twice in the map, or in every object, as `__proto__` is.
    if (key === undefined || map[key] !== undefined) return undefined;
    cursor.at = behindSpaces(cursor.text, cursor.at);
    const { line } = cursor;
    const isLiteral = cursor.text.charCodeAt(cursor.at) === code.bar;
    const value = readValue(cursor, indent, indent);
    if (value === undefined) return undefined;
    map[key] = value;
    if (isLiteral) cursor.literals.push({ holder: map, key, line });
  }
  return map;
}

/** The cursor ends up behind the colon. */
function readKey(cursor: Cursor): string | undefined {
  const { text, at, end } = cursor;
  const key = scalarKey(text, at);
  if (key === undefined || text.charCodeAt(key.end) !== code.colon) return undefined;
  if (!isSpaceOrEnd(text, key.end + 1, end)) return undefined;
  cursor.at = key.end + 1;
  return key.value;
}

function readList(cursor: BlockCursor): unknown {
  const { indent } = cursor;
  const list: unknown[] = [];
  while (cursor.indent === indent && isItem(cursor)) {
    const value = readItem(cursor, indent);
    if (value === undefined) return undefined;
    list.push(value);
  }
  return list;
}

/** A map or a list may begin behind the dash: it is as far indented as its first key. */
function readItem(cursor: BlockCursor, indent: number): unknown {
  const dash = cursor.at;
  cursor.at = behindSpaces(cursor.text, dash + 1);
  const { at } = cursor;
  const isNode = isItem(cursor) || (at < cursor.end && readKey(cursor) !== undefined);
  cursor.at = at;
  if (!isNode) return readValue(cursor, indent, indent + 1);
  cursor.indent = indent + at - dash;
  return nested(cursor, readNode);
}

/**
 * What stands behind a key or a dash, on the same line or below it, in a node indented by `indent`.
 * A list below may begin at `itemsFrom`: below a key its dashes need not be more indented than the key.
 */
function readValue(cursor: BlockCursor, indent: number, itemsFrom: number): unknown {
  const { text, at, end } = cursor;
  const first = at < end ? text.charCodeAt(at) : code.hash;
  if (first === code.hash) {
    toNextLine(cursor);
    return cursor.indent >= (isItem(cursor) ? itemsFrom : indent + 1) ? nested(cursor, readNode) : null;
  }
  if (first === code.bar) return readLiteral(cursor, indent);
  const value = readInline(cursor, first);
  return value !== undefined && closeLine(cursor) ? value : undefined;
}

function readInline(cursor: Cursor, first: number): unknown {
  const { text, at } = cursor;
  if (first === code.openBrace || first === code.openBracket) return readFlow(cursor);
  if (!isQuote(first)) return readPlainScalar(cursor, first);
  const quoted = quotedScalar(text, at);
  if (quoted !== undefined) cursor.at = quoted.end;
  return quoted?.value;
}

/** Up to the end of the line or a comment; the caller sees to it that no line continues it. */
function readPlainScalar(cursor: Cursor, first: number): unknown {
  const { text, at, end } = cursor;
  const behind = startsPlain(first, text.charCodeAt(at + 1)) ? plainEnd(text, at, end) : undefined;
  if (behind === undefined) return undefined;
  cursor.at = behind;
  return plainScalar(text.slice(at, behind));
}

/** Behind the last character that is neither space nor comment; undefined where a colon makes it a key, and for tabs and their like. */
function plainEnd(text: string, at: number, end: number): number | undefined {
  let behind = at;
  for (let next = at; next < end; next += 1) {
    const one = text.charCodeAt(next);
    if (one === code.space) continue;
    if (one === code.hash && next > behind) return behind;
    if (one < code.space || (one === code.colon && isSpaceOrEnd(text, next + 1, end))) return undefined;
    behind = next + 1;
  }
  return behind;
}

function isSpaceOrEnd(text: string, at: number, end: number): boolean {
  return at === end || text.charCodeAt(at) === code.space;
}
