/** The request target as text, and the check that a path means one thing only. */
import type { Context, Middleware, Next } from 'koa';
import { problem } from '../problem.ts';

/** Refuses an ambiguous path before anything reads it; after it `ctx.url` is in origin-form and has no fragment. */
export function createSafePath(): Middleware {
  return function safePath(ctx: Context, next: Next) {
    // Read from the request itself, since every request passes here: Koa's getters cost more.
    const { url = '/' } = ctx.req;
    const path = pathOf(url);
    const safe = url.includes('#') ? undefined : sanitisePath(path);
    if (safe === undefined) throw problem('bad-path', { detail: faultOf(path) });
    if (safe !== path || !url.startsWith('/')) ctx.url = safe + originForm(url).slice(path.length);
    return next();
  };
}

/** Of a path that is refused, in words for the client. */
function faultOf(path: string): string {
  if (/%(?![\da-f]{2})/i.test(path))
    return 'A percent sign needs two hexadecimal digits behind it; for itself send %25.';
  if (/%00/.test(path)) return 'The path contains a NUL (%00).';
  if (path.startsWith('//')) return 'The path begins with two slashes: send one.';
  if (/\/(?:\.|%2e){1,2}(?:\/|$)/i.test(path)) return 'The path contains a dot segment (. or ..): send it resolved.';
  return 'The path cannot be read in one way only.';
}

/** An ordinary path has none of these characters, and is safe after one look. */
const suspicious = /%|\\|\/\.|\/\/|[\0-\x20\x7f?#\s\xc0\xc1\xe0\xf0]/;

/**
 * The path in its plain form, or undefined when it must be refused. Encoded unreserved characters are decoded and hex
 * digits put in upper case (RFC 3986 section 6.2.2), so that `/%61dmin` cannot slip past a rule for `/admin`. Refused: two
 * slashes at the beginning, since what follows them is a host to some readers (section 4.2); dot segments, backslashes and NULs under any number and kind of encodings, also before
 * `;`, blanks or an encoded slash; an encoded line break; white space and control characters; a query, a fragment; an
 * incomplete percent-encoding. An encoded slash stays encoded.
 */
export function sanitisePath(path: string): string | undefined {
  if (!path.startsWith('/') || path.startsWith('//')) return undefined;
  if (!suspicious.test(path)) return path;
  if (/%(?![\da-f]{2})|[\\?#\0-\x20\x7f\s]|%(?:0a|0d)/i.test(path)) return undefined;
  const plain = path.replace(/%[\da-f]{2}/gi, decodeUnreserved);
  return hidesAnotherPath(plain) ? undefined : plain;
}

/** Most paths have none of these, and only one reading. */
const lenientlyRead = /[%;A-Z]|\/\/|[.\0-\x20](?:\/|$)/;

/**
 * A plain path as the most lenient service reads it: decoded again and again, path parameters (`;x=1`) cut off, then
 * dots and blanks at the end of each segment; slashes merged, in lower case. A path with one reading stays as it is.
 */
export function lenientReading(plain: string): string {
  if (!lenientlyRead.test(plain)) return plain;
  let decoded = decodeOverlong(plain);
  for (let encodings = 0; encodings < encodingsMax && decoded.includes('%'); encodings += 1)
    decoded = decodeOnce(decoded);
  const segments = decoded
    .replace(/;[^/]*/g, '')
    .split('/')
    .map(withoutDotsAtEnd);
  return segments
    .join('/')
    .replace(/\/{2,}/g, '/')
    .toLowerCase();
}

/** By hand: a regular expression would take quadratic time for a long run of dots. */
function withoutDotsAtEnd(segment: string): string {
  let end = segment.length;
  while (end > 0 && isDotOrBlank(segment.charCodeAt(end - 1))) end -= 1;
  return segment.slice(0, end);
}

function isDotOrBlank(code: number): boolean {
  return code === 0x2e || code <= 0x20;
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
  const found = absoluteForm(target);
  if (found === null) return target;
  const rest = target.slice(found[0].length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** Of a target in absolute-form; undefined for any other. */
export function authorityOf(target: string): string | undefined {
  return absoluteForm(target)?.[1];
}

function absoluteForm(target: string): RegExpExecArray | null {
  return target.startsWith('/') ? null : /^[a-z][a-z\d+.-]*:\/\/([^/?#]*)/i.exec(target);
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

/** Every hop may decode once more, so the dots of `%252e%252e` are dots too. Windows drops blanks behind them. */
function hidesAnotherPath(plain: string): boolean {
  let decoded = decodeOverlong(plain);
  for (let encodings = 0; encodings < encodingsMax; encodings += 1) {
    if (/[\\\0]|\/\.{1,2}(?:[\0-\x20][.\0-\x20]*)?(?:[;?#/]|$)/.test(decoded)) return true;
    if (!/%[\da-f]{2}/i.test(decoded)) return false;
    decoded = decodeOnce(decoded);
  }
  return true;
}

function decodeOnce(text: string): string {
  return decodeOverlong(text.replace(/%[\da-f]{2}/gi, decodeByte));
}

/** ASCII in more bytes than it needs, which is no UTF-8 (RFC 3629 section 3) and which some services accept: `\xc0\xae` is a dot. */
function decodeOverlong(text: string): string {
  return text.replace(
    /[\xc0\xc1][\0-\x3f\x80-\xbf]|\xe0[\x80\x81][\x80-\xbf]|\xf0\x80[\x80\x81][\x80-\xbf]/g,
    (bytes) =>
      String.fromCharCode(
        ((bytes.charCodeAt(bytes.length - 2) & 1) << 6) | (bytes.charCodeAt(bytes.length - 1) & 0x3f),
      ),
  );
}
