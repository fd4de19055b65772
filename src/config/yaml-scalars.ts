/** Scalars of plain YAML: what a plain one means in the core schema of YAML 1.2, and where a quoted one ends. */
import { code } from './yaml-cursor.ts';

/** Whole numbers and decimals of so few digits that every way to read them gives the same. */
const simpleNumber = /^[-+]?\d{1,15}(?:\.\d{1,15})?$/;

/** What the core schema takes, or could be thought to take, for something else than text. */
const notText = /^(?:~|null|true|false|[-+]?(?:0[ox][\da-f]+|(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|\.(?:inf|nan)))$/i;

/** What is longer is no number that anybody would write. */
const otherLengthMax = 200;

/** The value of a plain scalar; undefined for one that is seldom written, such as `0x1F` or `.inf`. */
export function plainScalar(text: string): string | number | boolean | null | undefined {
  if (!mayBeOther(text.charCodeAt(0))) return text;
  if (text.length > otherLengthMax) return undefined;
  if (!notText.test(text)) return text;
  if (simpleNumber.test(text)) return Number(text);
  if (text === 'null') return null;
  return text === 'true' || (text === 'false' ? false : undefined);
}

/** Whether something else than text can start with this: most texts are known by their first letter. */
function mayBeOther(first: number): boolean {
  // Below the letters: + - . and the digits. Then ~, and the first letters of null, true and false.
  if (first < 0x41) return first >= 0x2b;
  const lower = first | 0x20;
  return first === 0x7e || lower === 0x6e || lower === 0x74 || lower === 0x66;
}

/** Behind the letters, digits, `_`, `.`, `/` and `-` that begin at `at`; `at` itself when none do, or a `-` that is no sign. */
export function wordEnd(text: string, at: number): number {
  if (text.charCodeAt(at) === code.dash && !isDigit(text.charCodeAt(at + 1))) return at;
  let end = at;
  while (isWord(text.charCodeAt(end))) end += 1;
  return end;
}

/** Whether a plain scalar begins with these; of the many other characters that could, none is needed here. */
export function startsPlain(first: number, second: number): boolean {
  return first === code.dash ? isDigit(second) : isWord(first) || symbols.includes(first);
}

function isDigit(one: number): boolean {
  return one >= 0x30 && one <= 0x39;
}

/** Regular expressions begin with these. */
const symbols: readonly number[] = [...'$(\\^'].map((symbol) => symbol.charCodeAt(0));

export function isQuote(one: number): boolean {
  return one === code.quote || one === code.apostrophe;
}

function isWord(one: number): boolean {
  const lower = one | 0x20;
  // - . / and the digits; then the letters, and _.
  return (one >= 0x2d && one <= 0x39) || (lower >= 0x61 && lower <= 0x7a) || one === 0x5f;
}

export interface Token<T> {
  readonly value: T;
  /** The offset behind it. */
  readonly end: number;
}

/** The quoted scalar on one line that begins at `at`; its escapes are those of JSON, which mean the same in YAML. */
export function quotedScalar(text: string, at: number): Token<string> | undefined {
  const close = closingQuote(text, at);
  if (close === undefined) return undefined;
  const inner = text.slice(at + 1, close);
  const isDouble = text.charCodeAt(at) === code.quote;
  const value = isDouble ? unescaped(inner) : inner.replaceAll("''", "'");
  return value === undefined ? undefined : { value, end: close + 1 };
}

/** No regular expression: they run out of memory in a text of some megabytes. */
function closingQuote(text: string, at: number): number | undefined {
  const quote = text.charCodeAt(at);
  const escaping = quote === code.quote ? code.backslash : code.apostrophe;
  for (let next = at + 1; next < text.length; next += 1) {
    const one = text.charCodeAt(next);
    if (one === code.newline || one === code.carriageReturn) return undefined;
    const isEscape = one === escaping && (quote !== escaping || text.charCodeAt(next + 1) === quote);
    if (isEscape) next += 1;
    else if (one === quote) return next;
  }
  return undefined;
}

function unescaped(inner: string): string | undefined {
  if (!inner.includes('\\')) return inner;
  try {
    return String(JSON.parse(`"${inner}"`));
  } catch {
    return undefined;
  }
}

/** A longer one could not be a key. */
const keyLengthMax = 1000;

/** The key that begins at `at`, a word or a quoted scalar; undefined for what means more than it says. */
export function scalarKey(text: string, at: number): Token<string> | undefined {
  const token = isQuote(text.charCodeAt(at)) ? quotedScalar(text, at) : wordKey(text, at);
  return token !== undefined && token.end - at <= keyLengthMax ? token : undefined;
}

function wordKey(text: string, at: number): Token<string> | undefined {
  const end = wordEnd(text, at);
  const value = text.slice(at, end);
  return end > at && plainScalar(value) === value ? { value, end } : undefined;
}
