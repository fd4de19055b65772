/** Splits request targets, and rejects hosts and paths that two servers could interpret differently. */
import type { IncomingMessage } from 'node:http';
import type { Context, Middleware, Next } from 'koa';
import { decodeByte } from '#foundation';
import { problem } from './problem.ts';

/** Rejects hosts that two servers could interpret differently (RFC 9112 section 3.2). Run it before using the host. */
export function createHostCheck(): Middleware {
  return function hostCheck({ req }: Context, next: Next) {
    const { url = '/', rawHeaders } = req;
    if (hasSecondHost(rawHeaders))
      throw problem('bad-request', { detail: 'The request has more than one Host header.' });
    const authority = authorityOf(url);
    const host = authority ?? req.headers.host;
    if (host !== undefined && (authority === '' || !uriHost.test(host)))
      throw problem('bad-request', { detail: 'The host must be a name or an IP address, with an optional port.' });
    if (authority !== undefined) setHost(req, authority);
    return next();
  };
}

/** The grammar of RFC 3986 section 3.2.2. `Host` may also be empty (RFC 9110 section 7.2). */
const uriHost = /^(?:[\w.~!$&'()*+,;=%-]*|\[[\da-f:.]+\])(?::\d{0,5})?$/i;

/** Node silently keeps the first of several `Host` lines, so only the raw headers show the others. */
function hasSecondHost(rawHeaders: readonly string[]): boolean {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) if (isHostName(rawHeaders[index])) count += 1;
  return count > 1;
}

function isHostName(name: string | undefined): boolean {
  return name?.length === 4 && name.toLowerCase() === 'host';
}

/** Updates the raw headers as well, because those are forwarded to services. */
function setHost(req: IncomingMessage, host: string): void {
  const index = req.rawHeaders.findIndex((name, at) => at % 2 === 0 && isHostName(name));
  if (index === -1) req.rawHeaders.push('Host', host);
  else req.rawHeaders[index + 1] = host;
  req.headers.host = host;
}

/** Rejects ambiguous paths before other middleware sees them. Leaves `ctx.url` in origin-form, without a fragment. */
export function createSafePath(): Middleware {
  return function safePath(ctx: Context, next: Next) {
    // Runs for every request, so it reads the message itself, without Koa's getters.
    const { url = '/' } = ctx.req;
    const path = pathOf(url);
    const safe = url.includes('#') ? undefined : sanitisePath(path);
    if (safe === undefined) throw problem('bad-path', { detail: describeFault(path) });
    if (safe !== path || !url.startsWith('/')) ctx.url = safe + originForm(url).slice(path.length);
    return next();
  };
}

/** Explains to the client why the path was rejected. */
function describeFault(path: string): string {
  if (/%(?![\da-f]{2})/i.test(path))
    return 'A percent sign must be followed by two hexadecimal digits. Send %25 for a literal percent sign.';
  if (/%(?:[01][\da-f]|7f)/i.test(path)) return 'The path contains a control character, such as a NUL or a line break.';
  if (path.startsWith('//')) return 'The path begins with two slashes: send only one.';
  if (/\/(?:\.|%2e){1,2}(?:\/|$)/i.test(path))
    return 'The path contains a dot segment (. or ..): send the resolved path.';
  return 'The path is ambiguous: servers could interpret it in different ways.';
}

/** A path without any of these characters is safe and needs no further checks. */
const suspicious = /%|\\|\/\.|\/\/|[\0-\x20\x7f?#\s\xc0\xc1\xe0\xf0\xf8\xfc]/;

/**
 * Returns the path in its plain form, or undefined if it must be rejected. Decodes encoded unreserved characters and
 * converts hex digits to upper case (RFC 3986 section 6.2.2), so that `/%61dmin` cannot slip past a rule for `/admin`.
 * An encoded slash stays encoded. Rejected are:
 * - two leading slashes, because some parsers take what follows for a host (section 4.2);
 * - dot segments, backslashes and control characters, encoded in any way and any number of times, also if `;`, blanks
 *   or an encoded slash follow;
 * - white space, `?` and `#` that are not encoded;
 * - incomplete percent-encodings.
 */
export function sanitisePath(path: string): string | undefined {
  if (!path.startsWith('/') || path.startsWith('//')) return undefined;
  if (!suspicious.test(path)) return path;
  if (/%(?![\da-f]{2})|[\\?#\0-\x20\x7f\s]/i.test(path)) return undefined;
  const plain = path.replace(/%[\da-f]{2}/gi, decodeUnreserved);
  return isAmbiguous(plain) ? undefined : plain;
}

/** The path of a target in origin-form or absolute-form (RFC 9112 section 3.2), without its query. `*` stays `*`. */
export function pathOf(target: string): string {
  const origin = originForm(target);
  const query = origin.indexOf('?');
  const fragment = origin.indexOf('#');
  if (query === -1 && fragment === -1) return origin;
  return origin.slice(0, query === -1 || (fragment !== -1 && fragment < query) ? fragment : query);
}

/** The query of a target including the question mark, or `''`. */
export function searchOf(target: string): string {
  const start = target.indexOf('?');
  if (start === -1) return '';
  const fragment = target.indexOf('#');
  if (fragment === -1) return target.slice(start);
  return fragment < start ? '' : target.slice(start, fragment);
}

/**
 * Strips the scheme and authority from an absolute-form target. Koa's `ctx.path` would use Node's URL parser for it,
 * which throws for an authority such as `[`.
 */
export function originForm(target: string): string {
  const found = absoluteForm(target);
  if (found === null) return target;
  const rest = target.slice(found[0].length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** The authority of an absolute-form target, otherwise undefined. */
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

/** More than any client needs. The bound keeps the work linear for `%25252525…`. */
const encodingsMax = 4;

/** Matches a path with a dot segment that is not encoded. Windows ignores blanks around the dots. */
export const dotSegment = /\/ *\.{1,2}(?: [. ]*)?(?:[;?#/]|$)/;

const backslashOrControl = /[\\\x7f]|[^\x20-\uffff]/;

/** Every hop may decode once more, so `%252e%252e` counts as a dot segment. */
function isAmbiguous(plain: string): boolean {
  let decoded = decodeOverlong(plain);
  for (let encodings = 0; encodings < encodingsMax; encodings += 1) {
    if (backslashOrControl.test(decoded) || dotSegment.test(decoded)) return true;
    if (!/%(?:u00)?[\da-f]{2}/i.test(decoded)) return false;
    decoded = decodeOnce(decoded);
  }
  return true;
}

function decodeOnce(text: string): string {
  return decodeOverlong(text.replace(/%(?:u00)?[\da-f]{2}/gi, decodeByte));
}

/** Decodes overlong ASCII (`\xc0\xae` for a dot), which some services accept although RFC 3629 section 3 forbids it. */
export function decodeOverlong(text: string): string {
  return text.replace(
    /[\xc0\xc1][\0-\x3f\x80-\xbf]|\xe0[\x80\x81][\x80-\xbf]|(?:\xf0|\xf8\x80|\xfc\x80\x80)\x80[\x80\x81][\x80-\xbf]/g,
    (bytes) =>
      String.fromCharCode(
        ((bytes.charCodeAt(bytes.length - 2) & 1) << 6) | (bytes.charCodeAt(bytes.length - 1) & 0x3f),
      ),
  );
}
