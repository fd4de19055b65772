/** `Idempotency-Key`, which makes a request safe to send again, and a fingerprint of its body. */
import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { problem } from './problem.ts';

/**
 * The key without its quotes, at most 255 characters; undefined when the client sent none. Throws `bad-request` for a
 * key that cannot be read, since the client relies on it.
 */
export function idempotencyKeyOf(headers: IncomingHttpHeaders): string | undefined {
  const sent = headers['idempotency-key'];
  if (sent === undefined) return undefined;
  const key = parseKey(String(sent).trim());
  if (key !== undefined) return key;
  throw problem('bad-request', {
    detail: 'Idempotency-Key must be one text of 1 to 255 printable ASCII characters, in quotes or without.',
  });
}

/** Equal for parsed bodies that mean the same: the order of names, white space and escapes do not count. */
export function fingerprintOf(body: unknown): string {
  return createHash('sha256').update(canonical(body)).digest('base64url');
}

/** A quoted string (RFC 9651, section 3.3.3), or a bare word as many clients send it. */
function parseKey(text: string): string | undefined {
  const quoted = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/.exec(text)?.[1]?.replace(/\\(.)/g, '$1');
  const key = quoted ?? (/^[\x21\x23-\x7e]+$/.test(text) ? text : '');
  return key.length >= 1 && key.length <= 255 ? key : undefined;
}

/** As deep as the body, which its schema has passed. */
function canonical(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  const members = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join()}}`;
}
