/** Literal blocks of plain YAML: `|`, `|-` and `|+`, and the lines below that are their text. */
import { behindSpaces, type Cursor, code, lineEnd, toNextLine } from './yaml-cursor.ts';

/**
 * The text of the block whose `|` the cursor is at, in a node indented by `indent`; the cursor ends up in the line below.
 * Undefined for blocks that begin with a blank line, hold one with spaces, or have Windows line ends: there the rules are finer.
 */
export function readLiteral(cursor: Cursor, indent: number): string | undefined {
  const { text } = cursor;
  const chomping = text.slice(cursor.at + 1, cursor.end);
  const start = behindSpaces(text, cursor.end + 1);
  const column = start - cursor.end - 1;
  if (!chompings.includes(chomping) || column <= indent || isBlank(text, start)) return undefined;
  cursor.line += 1;
  cursor.end = lineEnd(text, start);
  const end = moveToLastLine(cursor, column);
  const lines = text.slice(start, end);
  if (end === undefined || lines.includes('\r')) return undefined;
  const content = lines.replaceAll(`\n${' '.repeat(column)}`, '\n');
  const breaks = chomping === '+' ? cursor.end - end + 1 : 1;
  toNextLine(cursor);
  return chomping === '-' ? content : content + '\n'.repeat(breaks);
}

const chompings = ['', '-', '+'];

/** From the end of the first line to that of the last, blank ones and all. The offset behind the last that is not blank; undefined for blanks with spaces. */
function moveToLastLine(cursor: Cursor, column: number): number | undefined {
  const { text } = cursor;
  let end = cursor.end;
  for (let start = end + 1; start < text.length; start = cursor.end + 1) {
    const at = behindSpaces(text, start);
    const blank = isBlank(text, at);
    if (blank && at > start) return undefined;
    if (!blank && at - start < column) return end;
    cursor.line += 1;
    cursor.end = blank ? at : lineEnd(text, at);
    if (!blank) end = cursor.end;
  }
  return end;
}

function isBlank(text: string, at: number): boolean {
  return at >= text.length || text.charCodeAt(at) === code.newline;
}
