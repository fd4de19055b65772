/** Rules for prefixes and rewrites: they must look like sanitised request paths, because others could never match. */
import { decodeByte } from '#foundation';
import type { Fault } from '../errors.ts';
import { quote } from '../quote.ts';
import { lengthFault } from './field.ts';

const pathLengthMax = 2048;

/** Returns the fault of a Mapping's prefix, or undefined when it is valid. */
export function prefixFault(path: string): Fault | undefined {
  const rule = rules.find(
    ({ breaks, allows, forbids }) => breaks?.(path) || forbids?.test(path) || allows?.test(path) === false,
  );
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

/** A rule that a pattern can express has `allows` or `forbids`, which are also in JSON Schemas. */
interface Rule {
  readonly breaks?: (path: string) => boolean;
  readonly allows?: RegExp;
  readonly forbids?: RegExp;
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
    allows: /^\//,
    message: 'does not start with "/"',
    remedy: (path) => `Write it as ${quote(`/${path}`)}.`,
  },
  {
    allows: /^[^\\]*$/,
    message: 'contains a backslash',
    remedy: () => 'Separate segments with "/".',
  },
  {
    allows: /^[^?#]*$/,
    message: 'contains a query or a fragment',
    remedy: () => 'Only the path is matched: remove everything from the "?" or "#" on.',
  },
  {
    allows: /^\/?(?:[^/]+(?:\/[^/]+)*\/?)?$/,
    message: 'contains an empty segment ("//")',
    remedy: (path) => `Write it as ${quote(path.replace(/\/{2,}/g, '/'))}.`,
  },
  {
    // RFC 3986 section 5.2.4. An encoded dot means the same (section 6.2.2.3). The gateway rejects such requests.
    forbids: /\/(?:\.|%2[eE]){1,2}(?:\/|$)/,
    message: 'contains a dot segment',
    remedy: () => 'Write the resolved path, without "." and "..".',
  },
  {
    allows: /^(?:[^%]|%[\da-fA-F]{2})*$/,
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
    allows: /^[\x21-\x7e]*$/,
    message: 'contains a character that is not allowed in a request path',
    remedy: () => 'Percent-encode it as UTF-8, for example "/caf%C3%A9".',
  },
];

/** What JSON Schema can say about a path, and about one that may also be empty. */
export const pathSchema = {
  maxLength: pathLengthMax,
  allOf: rules.flatMap(({ allows, forbids, message }) => [
    ...(allows === undefined ? [] : [{ pattern: allows.source, errorMessage: message }]),
    ...(forbids === undefined ? [] : [{ not: { pattern: forbids.source }, errorMessage: message }]),
  ]),
};
export const optionalPathSchema = { anyOf: [{ maxLength: 0 }, pathSchema] };

function decodeUnreserved(path: string): string {
  return path.replace(/%[\da-f]{2}/gi, (encoded) => {
    const character = decodeByte(encoded);
    return /[\w.~-]/.test(character) ? character : encoded;
  });
}
