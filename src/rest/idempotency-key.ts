/** Parses `Idempotency-Key`, which makes a request safe to repeat, and identifies requests and their bodies. */
import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { sortedJson } from '#foundation';
import { type Problem, problem } from '#http';

/**
 * Returns the key without its quotes, or undefined if the client sent none. Throws `bad-request` for an invalid key
 * instead of ignoring it, because the client relies on it.
 */
export function idempotencyKeyOf(headers: IncomingHttpHeaders): string | undefined {
  const sent = headers['idempotency-key'];
  if (sent === undefined) return undefined;
  const key = parseKey(String(sent).trim());
  if (key !== undefined) return key;
  throw problem('bad-request', {
    detail: 'Idempotency-Key must be a single string of 1 to 255 printable ASCII characters, with or without quotes.',
  });
}

/** Equal for bodies with the same JSON value, regardless of member order, white space and escapes. */
export function fingerprintOf(body: unknown): string {
  return createHash('sha256').update(sortedJson(body)).digest('base64url');
}

/** Identifies a request by its scope, such as user, method and path, and its key. 64 hexadecimal digits. */
export function requestDigest(parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

/** `sentAt` is the time of the first request with the key, in RFC 3339, if it is known. */
export function idempotencyMismatch(sentAt?: string): Problem {
  const first = `a request with another body${sentAt === undefined ? '' : `, sent at ${sentAt}`}`;
  return problem('idempotency-mismatch', {
    detail: `The Idempotency-Key of this request belongs to ${first}. Send that body again, or another key.`,
  });
}

/** Accepts a quoted string (RFC 9651, section 3.3.3), and the unquoted form that many clients send. */
function parseKey(text: string): string | undefined {
  const quoted = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/.exec(text)?.[1]?.replace(/\\(.)/g, '$1');
  const key = quoted ?? (/^[\x21\x23-\x7e]+$/.test(text) ? text : '');
  return key.length >= 1 && key.length <= 255 ? key : undefined;
}
