/** Rules for prefixes and rewrites: they must look like sanitised request paths, because others could never match. */
import { decodeByte } from '#foundation';
import type { Fault } from '../errors.ts';
import { quote } from '../quote.ts';
import { lengthFault } from './field.ts';

const pathLengthMax = 2048;

/** Returns the fault of a Mapping's prefix, or undefined when it is valid. */
export function prefixFault(path: string): Fault | undefined {
  const rule = rules.find(({ breaks }) => breaks(path));
  if (rule === undefined) return lengthFault(path, pathLengthMax);
  return { message: `${quote(path)} ${rule.message}`, remedy: rule.remedy(path) };
}

/** Like `prefixFault`, for a rewrite, which may also be empty. */
export function rewriteFault(path: string): Fault | undefined {
  return path === '' ? undefined : prefixFault(path);
}

/**
 * Removes a trailing slash, because `/v1/orders/` and `/v1/orders` are the same path. Leaves `/` and `''` unchanged.
 */
export function withoutTrailingSlash(path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}

/**
 * Normalises a prefix like a request path: without a trailing slash, and with upper-case percent-encoding (RFC 3986
 * section 6.2.2.1).
 */
export function requestedPrefix(path: string): string {
  return withoutTrailingSlash(withUpperCaseEncoding(path));
}

export function withUpperCaseEncoding(path: string): string {
  return path.replace(/%[\da-f]{2}/gi, (encoded) => encoded.toUpperCase());
}

interface Rule {
  readonly breaks: (path: string) => boolean;
  readonly message: string;
  readonly remedy: (path: string) => string;
}

const rules: readonly Rule[] = [
  {
    breaks: (path) => /^[a-z][a-z\d+.-]*:\/\//i.test(path),
    message: 'is a URL, not a path',
    remedy: () => 'Write the path alone, without scheme and host.',
  },
  {
    breaks: (path) => !path.startsWith('/'),
    message: 'does not start with "/"',
    remedy: (path) => `Write it as ${quote(`/${path}`)}.`,
  },
  {
    breaks: (path) => path.includes('\\'),
    message: 'contains a backslash',
    remedy: () => 'Separate segments with "/".',
  },
  {
    breaks: (path) => /[?#]/.test(path),
    message: 'contains a query or a fragment',
    remedy: () => 'Only the path is matched: remove everything from the "?" or "#" on.',
  },
  {
    breaks: (path) => path.includes('//'),
    message: 'contains an empty segment ("//")',
    remedy: (path) => `Write it as ${quote(path.replace(/\/{2,}/g, '/'))}.`,
  },
  {
    // RFC 3986 section 5.2.4. An encoded dot means the same (section 6.2.2.3). The gateway rejects such requests.
    breaks: (path) => /\/(?:\.|%2e){1,2}(?:\/|$)/i.test(path),
    message: 'contains a dot segment',
    remedy: () => 'Write the resolved path, without "." and "..".',
  },
  {
    breaks: (path) => /%(?![\da-f]{2})/i.test(path),
    message: 'contains a "%" that is not followed by two hexadecimal digits',
    remedy: () => 'Write a percent sign as "%25".',
  },
  {
    // RFC 3986 section 6.2.2.2: the gateway decodes such characters in requests, so this would never match.
    breaks: (path) => decodeUnreserved(path) !== path,
    message: 'percent-encodes a character that needs no encoding',
    remedy: (path) => `Write it as ${quote(decodeUnreserved(path))}.`,
  },
  {
    breaks: (path) => /[^\x21-\x7e]/.test(path),
    message: 'contains a character that is not allowed in a request path',
    remedy: () => 'Percent-encode it as UTF-8, for example "/caf%C3%A9".',
  },
];

function decodeUnreserved(path: string): string {
  return path.replace(/%[\da-f]{2}/gi, (encoded) => {
    const character = decodeByte(encoded);
    return /[\w.~-]/.test(character) ? character : encoded;
  });
}
