/** What names a request that may be sent twice and must be carried out once: `Idempotency-Key`, or else `X-Request-ID`. */
import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { problem } from './problem.ts';

/**
 * The key in its plain form, at most 255 characters; the two headers never give the same one. Undefined when the client
 * sent none. Throws `bad-request` for an `Idempotency-Key` that cannot be read, since a client that believes itself
 * safe would not be; an unreadable `X-Request-ID` is none.
 */
export function idempotencyKeyOf(headers: IncomingHttpHeaders): string | undefined {
  const { 'idempotency-key': said, 'x-request-id': requestId } = headers;
  if (said === undefined) {
    return typeof requestId === 'string' && /^[\x21-\x7e]{1,242}$/.test(requestId)
      ? `x-request-id:${requestId}`
      : undefined;
  }
  const key = parseKey(String(said).trim());
  if (key !== undefined) return key;
  throw problem('bad-request', {
    detail: 'Idempotency-Key must be one text of 1 to 255 printable ASCII characters, in quotes or without.',
  });
}

/** The same for parsed bodies that mean the same: the order of the names, white space and escapes do not count. */
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
