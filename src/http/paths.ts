/** The request target as text, and the check that a path means one thing only. */
import type { Context, Middleware, Next } from 'koa';
import { problem } from './problem.ts';

export interface SafePathOptions {
  /**
   * Refuses as well what a service may read as another path than the gateway does: an encoded slash, an empty segment,
   * a path parameter, a percent-encoding that is encoded again. @default false
   */
  readonly strictPaths?: boolean;
}

/** Refuses an ambiguous path before anything reads it; after it `ctx.url` is in origin-form and has no fragment. */
export function createSafePath({ strictPaths = false }: SafePathOptions = {}): Middleware {
  return function safePath(ctx: Context, next: Next) {
    // Read from the request itself, since every request passes here: Koa's getters cost more.
    const { url = '/' } = ctx.req;
    const path = pathOf(url);
    const safe = url.includes('#') ? undefined : sanitisePath(path, strictPaths);
    if (safe === undefined) throw problem('bad-path', { detail: refusalOf(path, strictPaths) });
    if (safe !== path || !url.startsWith('/')) ctx.url = safe + originForm(url).slice(path.length);
    return next();
  };
}

/** An ordinary path has none of these characters, and is safe after one look. */
const suspicious = /%|\\|\/\.|\/\/|[\0-\x20\x7f?#\s]/;
const suspiciousWhenStrict = /%|\\|\/\.|\/\/|[\0-\x20\x7f?#\s;]/;

/**
 * The path in its plain form, or undefined when it must be refused. Leading slashes collapse to one, encoded unreserved
 * characters are decoded and hex digits put in upper case (RFC 3986 section 6.2.2), so that `/%61dmin` cannot slip past
 * a rule for `/admin`. Refused: dot segments, under any number of encodings, also before `;` or an encoded slash; a
 * backslash, a NUL, a line break, encoded or not; white space and control characters; a query, a fragment; an incomplete percent-encoding. An encoded
 * slash stays encoded, unless `isStrict`, which refuses the ambiguities of `SafePathOptions`.
 */
export function sanitisePath(path: string, isStrict = false): string | undefined {
  if (!path.startsWith('/')) return undefined;
  if (!(isStrict ? suspiciousWhenStrict : suspicious).test(path)) return path;
  if (/%(?![\da-f]{2})|[\\?#\0-\x20\x7f\s]|%(?:5c|00|0a|0d)/i.test(path)) return undefined;
  const plain = path.replace(/%[\da-f]{2}/gi, decodeUnreserved).replace(/^\/+/, '/');
  return hidesDotSegment(plain) || (isStrict && ambiguityOf(plain) !== undefined) ? undefined : plain;
}

/** The path of a request target in origin-form or absolute-form (RFC 9112 section 3.2), without its query; `*` stays `*`. */
export function pathOf(target: string): string {
  const origin = originForm(target);
  const query = origin.indexOf('?');
  const fragment = origin.indexOf('#');
  if (query === -1 && fragment === -1) return origin;
  return origin.slice(0, query === -1 || (fragment !== -1 && fragment < query) ? fragment : query);
}

/** The query of a request target with its question mark, or `''`. */
export function searchOf(target: string): string {
  const start = target.indexOf('?');
  if (start === -1) return '';
  const fragment = target.indexOf('#');
  if (fragment === -1) return target.slice(start);
  return fragment < start ? '' : target.slice(start, fragment);
}

/**
 * The target without the scheme and authority that a client may send before it. Node's URL parser, which `ctx.path` uses
 * for such a target, throws for an authority like `[`.
 */
export function originForm(target: string): string {
  const authority = target.startsWith('/') ? null : /^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i.exec(target);
  if (authority === null) return target;
  const rest = target.slice(authority[0].length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/**
 * What services read in different ways, matched against a plain path; a refusal names the first that matches. The last
 * one ensures that a path means the same to a server that decodes it once more.
 */
const ambiguities: readonly (readonly [name: string, pattern: RegExp])[] = [
  ['an encoded slash', /%(?:25)*2F/i],
  ['an empty segment', /\/\//],
  ['a path parameter (";")', /;|%(?:25)*3B/i],
  ['a percent-encoding that is encoded again', /%25[\da-f]{2}/i],
];

function ambiguityOf(plain: string): string | undefined {
  return ambiguities.find(([, pattern]) => pattern.test(plain))?.[0];
}

/** Why the path was refused. */
function refusalOf(path: string, isStrict: boolean): string {
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

/** More than any client needs; the bound keeps the work for `%25252525…` linear. */
const encodingsMax = 4;

/** Every hop may decode once more, so the dots of `%252e%252e` are dots too. */
function hidesDotSegment(plain: string): boolean {
  let decoded = plain;
  for (let encodings = 0; encodings < encodingsMax; encodings += 1) {
    if (/(?:[/\\]|%2F)\.{1,2}(?:[;?#/\\]|%(?:2F|3B|3F|23)|$)/i.test(decoded)) return true;
    if (!/%[\da-f]{2}/i.test(decoded)) return false;
    decoded = decoded.replace(/%[\da-f]{2}/gi, decodeByte);
  }
  return true;
}
