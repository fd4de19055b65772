/** Paths that mean one thing only: what a later hop could read differently is refused or put in its plain form here. */
import type { Context, Middleware, Next } from 'koa';
import { problem } from './problem.ts';

/** Everything that makes the careful reading necessary; an ordinary path has none of it. */
const suspicious = /%|\\|\/\.|\/\/|[\0#]/;

/** Refuses or mends the path before anything reads it. */
export function createSafePath(): Middleware {
  return function safePath(ctx: Context, next: Next) {
    const path = ctx.path;
    if (path.startsWith('/') && !suspicious.test(path)) return next();
    const safe = sanitisePath(path);
    if (safe === undefined)
      throw problem('bad-path', {
        detail: 'The path cannot be read in one way only.',
      });
    if (safe !== path) ctx.url = safe + ctx.search;
    return next();
  };
}

/**
 * The path in its plain form, or undefined when it must be refused. Leading slashes collapse to one, encoded unreserved
 * characters are decoded and hex digits put in upper case (RFC 3986 section 6.2.2), so that `/%61dmin` cannot slip past
 * a rule for `/admin`. Refused: dot segments, encoded or not, also before `;` or an encoded slash; a backslash, a NUL,
 * a line break, encoded or not; a fragment; an incomplete percent-encoding. An encoded slash stays encoded.
 */
export function sanitisePath(path: string): string | undefined {
  if (!path.startsWith('/') || /%(?![\da-f]{2})|[\\#\0\r\n]|%(?:5c|00|0a|0d)/i.test(path)) return undefined;
  const plain = path.replace(/%[\da-f]{2}/gi, decodeUnreserved).replace(/^\/+/, '/');
  return /(?:\/|%2F)\.{1,2}(?:;|\/|%2F|%3B|$)/.test(plain) ? undefined : plain;
}

function decodeUnreserved(encoded: string): string {
  const character = String.fromCharCode(Number.parseInt(encoded.slice(1), 16));
  return /[\w.~-]/.test(character) ? character : encoded.toUpperCase();
}
