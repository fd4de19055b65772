/** Entity tags and the precondition that saves a transfer (RFC 9110 sections 8.8.3 and 13.1.2). */
import { createHash } from 'node:crypto';

/** A strong tag of a representation without a version of its own: a digest of its bytes. */
export function digestTag(body: string): string {
  return `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
}

/** True when `If-None-Match` names the tag, compared weakly. */
export function noneMatchFails(ifNoneMatch: string, tag: string): boolean {
  if (ifNoneMatch.trim() === '*') return true;
  const known: readonly string[] = ifNoneMatch.match(/"[^"]*"/g) ?? [];
  return known.includes(tag.replace(/^W\//, ''));
}
