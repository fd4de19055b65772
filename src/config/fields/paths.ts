/** What a prefix or a rewrite may look like, rule by rule: a path as requests have it after sanitising, so that it can match. */
import type { Fault } from '../errors.ts';
import { quote } from '../quote.ts';
import { lengthFault } from './field.ts';

const pathLengthMax = 2048;

/** What is wrong with a Mapping's prefix, or undefined. */
export function prefixFault(path: string): Fault | undefined {
  const rule = rules.find(({ breaks }) => breaks(path));
  if (rule === undefined) return lengthFault(path, pathLengthMax);
  return { message: `${quote(path)} ${rule.message}`, remedy: rule.remedy(path) };
}

/** The same for a rewrite, which may be empty as well. */
export function rewriteFault(path: string): Fault | undefined {
  return path === '' ? undefined : prefixFault(path);
}

/** Without the slash at the end: `/v1/hotels/` and `/v1/hotels` are one path. `/` and `''` stay. */
export function withoutTrailingSlash(path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}

/** A prefix as requests have it: their percent-encoding is in capitals (RFC 3986 section 6.2.2.1). */
export function requestedPrefix(path: string): string {
  return withoutTrailingSlash(path.replace(/%[\da-f]{2}/gi, (encoded) => encoded.toUpperCase()));
}

interface Rule {
  readonly breaks: (path: string) => boolean;
  readonly message: string;
  readonly remedy: (path: string) => string;
}

const rules: readonly Rule[] = [
  {
    breaks: (path) => !path.startsWith('/'),
    message: 'does not start with "/"',
    remedy: (path) => `Write it as ${quote(`/${path}`)}.`,
  },
  {
    breaks: (path) => path.includes('\\'),
    message: 'holds a backslash',
    remedy: () => 'Put "/" between segments.',
  },
  {
    breaks: (path) => /[?#]/.test(path),
    message: 'holds a query or a fragment',
    remedy: () => 'Only the path is matched: leave out everything from "?" or "#" on.',
  },
  {
    breaks: (path) => path.includes('//'),
    message: 'holds an empty segment ("//")',
    remedy: (path) => `Write it as ${quote(path.replace(/\/{2,}/g, '/'))}.`,
  },
  {
    // RFC 3986 section 5.2.4; an encoded dot means the same (section 6.2.2.3), and such requests are refused.
    breaks: (path) => /\/(?:\.|%2e){1,2}(?:\/|$)/i.test(path),
    message: 'holds a dot segment',
    remedy: () => 'Write the path that it leads to, without "." and "..".',
  },
  {
    breaks: (path) => /%(?![\da-f]{2})/i.test(path),
    message: 'holds a "%" without two hexadecimal digits',
    remedy: () => 'Write a percent sign as "%25".',
  },
  {
    // RFC 3986 section 6.2.2.2: such characters arrive decoded, so this would match no request.
    breaks: (path) => decodeUnreserved(path) !== path,
    message: 'percent-encodes a character that needs no encoding',
    remedy: (path) => `Write it as ${quote(decodeUnreserved(path))}.`,
  },
  {
    breaks: (path) => /[^\x21-\x7e]/.test(path),
    message: 'holds a character that no request path can hold',
    remedy: () => 'Percent-encode it as UTF-8, for example "/caf%C3%A9".',
  },
];

function decodeUnreserved(path: string): string {
  return path.replace(/%[\da-f]{2}/gi, (encoded) => {
    const character = String.fromCharCode(Number.parseInt(encoded.slice(1), 16));
    return /[\w.~-]/.test(character) ? character : encoded;
  });
}
