/** Paths that mean one thing only: what a later hop could read differently is refused or put in its plain form here. */
import type { Context, Middleware, Next } from 'koa';
import { problem } from './problem.ts';
import { originForm, pathOf } from './request-target.ts';

export interface SafePathOptions {
  /**
   * Refuses as well what a service may read as another path than the gateway does: an encoded slash, an empty segment,
   * a path parameter, a percent-encoding that is encoded again. @default false
   */
  readonly strictPaths?: boolean;
}

/** Refuses or mends the path before anything reads it; after it `ctx.url` is in origin-form and has no fragment. */
export function createSafePath({ strictPaths = false }: SafePathOptions = {}): Middleware {
  return function safePath(ctx: Context, next: Next) {
    // Where every request passes, it is asked itself: `ctx.url` and `ctx.method` are found through a getter of a getter.
    const { url = '/' } = ctx.req;
    const path = pathOf(url);
    const safe = url.includes('#') ? undefined : sanitisePath(path, strictPaths);
    if (safe === undefined) throw problem('bad-path', { detail: detailOf(path, strictPaths) });
    if (safe !== path || !url.startsWith('/')) ctx.url = safe + originForm(url).slice(path.length);
    return next();
  };
}

/** Everything that makes the careful reading necessary; an ordinary path has none of it. */
const suspicious = /%|\\|\/\.|\/\/|[\0#\s]/;
const suspiciousWhenStrict = /%|\\|\/\.|\/\/|[\0#\s;]/;

/**
 * What services read in different ways, looked for in a plain path; of several the first is told. By the last of them
 * a path means the same to whoever decodes it once more.
 */
const ambiguities: readonly (readonly [name: string, pattern: RegExp])[] = [
  ['an encoded slash', /%(?:25)*2F/i],
  ['an empty segment', /\/\//],
  ['a path parameter (";")', /;|%(?:25)*3B/i],
  ['a percent-encoding that is encoded again', /%25[\da-f]{2}/i],
];

/**
 * The path in its plain form, or undefined when it must be refused. Leading slashes collapse to one, encoded unreserved
 * characters are decoded and hex digits put in upper case (RFC 3986 section 6.2.2), so that `/%61dmin` cannot slip past
 * a rule for `/admin`. Refused: dot segments, under any number of encodings, also before `;` or an encoded slash; a
 * backslash, a NUL, a line break, encoded or not; white space; a fragment; an incomplete percent-encoding. An encoded
 * slash stays encoded, unless `isStrict` has it refused, as in `SafePathOptions`.
 */
export function sanitisePath(path: string, isStrict = false): string | undefined {
  if (!path.startsWith('/')) return undefined;
  if (!(isStrict ? suspiciousWhenStrict : suspicious).test(path)) return path;
  if (/%(?![\da-f]{2})|[\\#\0\s]|%(?:5c|00|0a|0d)/i.test(path)) return undefined;
  const plain = path.replace(/%[\da-f]{2}/gi, decodeUnreserved).replace(/^\/+/, '/');
  return hidesDotSegment(plain) || (isStrict && ambiguityOf(plain) !== undefined) ? undefined : plain;
}

function ambiguityOf(plain: string): string | undefined {
  return ambiguities.find(([, pattern]) => pattern.test(plain))?.[0];
}

/** Of a path that was refused. */
function detailOf(path: string, isStrict: boolean): string {
  const plain = isStrict ? sanitisePath(path) : undefined;
  const found = plain === undefined ? undefined : ambiguityOf(plain);
  return `The path cannot be read in one way only${found === undefined ? '' : `: it has ${found}`}.`;
}

function decodeUnreserved(encoded: string): string {
  const character = decodeByte(encoded);
  return /[\w.~-]/.test(character) ? character : encoded.toUpperCase();
}

function decodeByte(encoded: string): string {
  return String.fromCharCode(Number.parseInt(encoded.slice(1), 16));
}

/** Deeper than anybody needs; the bound keeps the reading of `%25252525…` linear. */
const encodingsMax = 4;

/** Every hop on the way may decode once more, so the dots of `%252e%252e` are dots too. */
function hidesDotSegment(plain: string): boolean {
  let seen = plain;
  for (let encodings = 0; encodings < encodingsMax; encodings += 1) {
    if (/(?:[/\\]|%2F)\.{1,2}(?:[;?#/\\]|%(?:2F|3B|3F|23)|$)/i.test(seen)) return true;
    if (!/%[\da-f]{2}/i.test(seen)) return false;
    seen = seen.replace(/%[\da-f]{2}/gi, decodeByte);
  }
  return true;
}
