/** Paths that mean one thing only: what a later hop could read differently is refused or put in its plain form here. */
import type { Context, Middleware, Next } from 'koa';
import { problem } from './problem.ts';
import { originForm, pathOf } from './request-target.ts';

/** Refuses or mends the path before anything reads it; after it `ctx.url` is in origin-form and has no fragment. */
export function createSafePath(): Middleware {
  return function safePath(ctx: Context, next: Next) {
    // Where every request passes, it is asked itself: `ctx.url` and `ctx.method` are found through a getter of a getter.
    const { url = '/' } = ctx.req;
    const path = pathOf(url);
    const safe = url.includes('#') ? undefined : sanitisePath(path);
    if (safe === undefined) throw problem('bad-path', { detail: 'The path cannot be read in one way only.' });
    if (safe !== path || !url.startsWith('/')) ctx.url = safe + originForm(url).slice(path.length);
    return next();
  };
}

/** Everything that makes the careful reading necessary; an ordinary path has none of it. */
const suspicious = /%|\\|\/\.|\/\/|[\0#\s]/;

/**
 * The path in its plain form, or undefined when it must be refused. Leading slashes collapse to one, encoded unreserved
 * characters are decoded and hex digits put in upper case (RFC 3986 section 6.2.2), so that `/%61dmin` cannot slip past
 * a rule for `/admin`. Refused: dot segments, under any number of encodings, also before `;` or an encoded slash; a
 * backslash, a NUL, a line break, encoded or not; white space; a fragment; an incomplete percent-encoding. An encoded
 * slash stays encoded.
 */
export function sanitisePath(path: string): string | undefined {
  if (!path.startsWith('/')) return undefined;
  if (!suspicious.test(path)) return path;
  if (/%(?![\da-f]{2})|[\\#\0\s]|%(?:5c|00|0a|0d)/i.test(path)) return undefined;
  const plain = path.replace(/%[\da-f]{2}/gi, decodeUnreserved).replace(/^\/+/, '/');
  return hidesDotSegment(plain) ? undefined : plain;
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
    if (!/%(?:25|2E|5C)/i.test(seen)) return false;
    seen = seen.replace(/%[\da-f]{2}/gi, decodeByte);
  }
  return true;
}
