/** Where a reader of plain YAML is: in which line, how far indented, and what comes next. */

/** Moves on while it reads; who gives up on the text throws it away. */
export interface Cursor {
  readonly text: string;
  /** The offset of what comes next. */
  at: number;
  /** The offset behind what may be read as one: the end of the line. */
  end: number;
  /** The column of the node that comes next; -1 behind the last one. */
  indent: number;
  /** Counts from 1. */
  line: number;
  /** How many nodes are open. */
  depth: number;
}

export const code = {
  newline: 0x0a,
  carriageReturn: 0x0d,
  space: 0x20,
  quote: 0x22,
  hash: 0x23,
  apostrophe: 0x27,
  comma: 0x2c,
  dash: 0x2d,
  colon: 0x3a,
  openBracket: 0x5b,
  backslash: 0x5c,
  closeBracket: 0x5d,
  bar: 0x7c,
  openBrace: 0x7b,
  closeBrace: 0x7d,
} as const;

/** Whoever nests deeper is left to the library. */
const depthMax = 50;

/** Runs with one more node open; undefined when that is too many. */
export function nested<C extends Cursor>(cursor: C, read: (cursor: C) => unknown): unknown {
  if (cursor.depth === depthMax) return undefined;
  cursor.depth += 1;
  const value = read(cursor);
  cursor.depth -= 1;
  return value;
}

/** The end of the line that `at` stands in. */
export function lineEnd(text: string, at: number): number {
  const end = text.indexOf('\n', at);
  return end === -1 ? text.length : end;
}

/** Behind the spaces that begin at `at`, if any do. */
export function behindSpaces(text: string, at: number): number {
  let behind = at;
  while (text.charCodeAt(behind) === code.space) behind += 1;
  return behind;
}

/** From the end of a line to the next that has more than a comment. Nowhere is a character asked for behind the last: that is slow. */
export function toNextLine(cursor: Cursor): void {
  const { text } = cursor;
  for (let start = cursor.end + 1; start < text.length; start = cursor.end + 1) {
    const at = behindSpaces(text, start);
    const first = text.charCodeAt(at);
    cursor.line += 1;
    cursor.end = first === code.newline ? at : lineEnd(text, at);
    if (at < cursor.end && first !== code.hash) {
      cursor.at = at;
      cursor.indent = at - start;
      return;
    }
  }
  cursor.indent = -1;
}

/** Ends the line: behind `at` may be a comment. False when something else is there. */
export function closeLine(cursor: Cursor): boolean {
  const { text, at, end } = cursor;
  const behind = behindSpaces(text, at);
  const isComment = behind > at && text.charCodeAt(behind) === code.hash;
  if (behind < end && !isComment) return false;
  toNextLine(cursor);
  return true;
}
