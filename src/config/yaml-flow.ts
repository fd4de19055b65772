/** Flow collections of plain YAML, and JSON with them: `[a, b]`, `{ port: 80 }`, `{"port":80}`. */
import { type Cursor, code, nested } from './yaml-cursor.ts';
import { isQuote, plainScalar, quotedScalar, scalarKey, wordEnd } from './yaml-scalars.ts';

/** The collection that begins at the cursor, which ends up behind it; undefined when it is not plain or leaves the line. */
export function readFlow(cursor: Cursor): unknown {
  return nested(cursor, cursor.text.charCodeAt(cursor.at) === code.openBracket ? readList : readMap);
}

function readList(cursor: Cursor): unknown {
  const list: unknown[] = [];
  if (opensEmpty(cursor, code.closeBracket)) return list;
  for (;;) {
    const value = readValue(cursor);
    if (value === undefined) return undefined;
    list.push(value);
    const separator = nextCode(cursor);
    cursor.at += 1;
    if (separator === code.closeBracket) return list;
    if (separator !== code.comma) return undefined;
  }
}

function readMap(cursor: Cursor): unknown {
  const map: Record<string, unknown> = {};
  if (opensEmpty(cursor, code.closeBrace)) return map;
  for (;;) {
    nextCode(cursor);
    const key = readKey(cursor);
    // Twice in the map, or in every object, as `__proto__` is.
    if (key === undefined || map[key] !== undefined) return undefined;
    const value = readValue(cursor);
    if (value === undefined) return undefined;
    map[key] = value;
    const separator = nextCode(cursor);
    cursor.at += 1;
    if (separator === code.closeBrace) return map;
    if (separator !== code.comma) return undefined;
  }
}

function opensEmpty(cursor: Cursor, close: number): boolean {
  cursor.at += 1;
  const isEmpty = nextCode(cursor) === close;
  if (isEmpty) cursor.at += 1;
  return isEmpty;
}

function readValue(cursor: Cursor): unknown {
  const next = nextCode(cursor);
  if (next === code.openBracket || next === code.openBrace) return readFlow(cursor);
  const { text, at } = cursor;
  if (isQuote(next)) {
    const quoted = quotedScalar(text, at);
    if (quoted !== undefined) cursor.at = quoted.end;
    return quoted?.value;
  }
  cursor.at = wordEnd(text, at);
  return cursor.at === at ? undefined : plainScalar(text.slice(at, cursor.at));
}

/** The cursor ends up behind the colon, which ends a quoted key by itself and a word only with a space. */
function readKey(cursor: Cursor): string | undefined {
  const { text, at } = cursor;
  const key = scalarKey(text, at);
  if (key === undefined || text.charCodeAt(key.end) !== code.colon) return undefined;
  cursor.at = key.end + 1;
  const isQuoted = isQuote(text.charCodeAt(at));
  return isQuoted || text.charCodeAt(cursor.at) === code.space ? key.value : undefined;
}

/** What comes next behind spaces, and behind line ends where the cursor may pass them. */
function nextCode(cursor: Cursor): number {
  const { text, end } = cursor;
  for (; cursor.at < end; cursor.at += 1) {
    const next = text.charCodeAt(cursor.at);
    if (next === code.newline) cursor.line += 1;
    else if (next !== code.space) return next;
  }
  return Number.NaN;
}
