/** Entity tags and the preconditions `If-Match` and `If-None-Match` (RFC 9110 sections 8.8.3, 13.1.1 and 13.1.2). */
import { hash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Context } from 'koa';
import { type Problem, problem } from './problem.ts';

/** The strong tags in `If-Match`, without quotes. `*` matches any. */
export type Precondition = '*' | readonly string[];

/** Throws `precondition-required` without `If-Match`. A malformed list counts as empty, so it matches nothing. */
export function preconditionOf(ctx: Context): Precondition {
  const { 'if-match': ifMatch } = ctx.req.headers;
  if (ifMatch === undefined) {
    throw problem('precondition-required', { detail: 'Send If-Match with the ETag from a GET of this resource.' });
  }
  return strongTags(ifMatch);
}

function strongTags(ifMatch: string): Precondition {
  if (ifMatch.trim() === '*') return '*';
  return parseEntityTags(ifMatch)
    .filter(({ isWeak }) => !isWeak)
    .map(({ opaque }) => opaque);
}

/** `*` never fails. */
export function preconditionFailed({ method, req }: Context): Problem {
  const tags = parseEntityTags(req.headers['if-match'] ?? '');
  return problem('precondition-failed', { detail: failureOf(tags, method) });
}

function failureOf(tags: readonly EntityTag[], method: string): string {
  if (tags.length === 0) return 'Send If-Match exactly as ETag gave it, with the double quotes.';
  // A compressing proxy makes tags weak, so reading the resource again would return the same weak tag.
  if (tags.every(({ isWeak }) => isWeak))
    return 'If-Match accepts only strong tags: send the ETag without the leading W/.';
  if (method === 'GET' || method === 'HEAD')
    return 'This representation has another ETag: send the request without If-Match to read it.';
  return 'The resource has changed since you read it: read it again before you change it.';
}

/** True when `If-Match` does not contain the tag, by strong comparison. */
export function matchFails(ifMatch: string, tag: string): boolean {
  const expected = strongTags(ifMatch);
  return expected !== '*' && !expected.some((opaque) => tag === `"${opaque}"`);
}

/** True when `If-None-Match` contains the tag, by weak comparison. */
export function noneMatchFails(ifNoneMatch: string, tag: string): boolean {
  if (ifNoneMatch.trim() === '*') return true;
  return parseEntityTags(ifNoneMatch).some(({ opaque }) => tag === `"${opaque}"` || tag === `W/"${opaque}"`);
}

/**
 * A strong tag. Without a version, it is 132 bits of a digest of the body: SHA-512, because SHA-256 is slow on a processor
 * without SHA instructions. With a version, which changes with the resource, a checksum is enough to tell its
 * representations apart: JSON from YAML, some fields from all, and what the next release shows from what this one does.
 */
export function digestTag(body: string, version?: number): string {
  if (version === undefined) return `"${hash('sha512', body, 'base64url').slice(0, 22)}"`;
  return `"${version}-${crc32(body).toString(36)}"`;
}

export interface EntityTag {
  readonly isWeak: boolean;
  /** The text between the quotes. */
  readonly opaque: string;
}

/** Parses a list of entity tags. Returns an empty array if any part of it is malformed. */
export function parseEntityTags(text: string): readonly EntityTag[] {
  const tag = /(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"[ \t]*(?:,[ \t,]*|$)/y;
  const tags: EntityTag[] = [];
  // Empty list members are ignored (section 5.6.1.2).
  tag.lastIndex = /^[ \t,]*/.exec(text)?.[0].length ?? 0;
  while (tag.lastIndex < text.length) {
    const found = tag.exec(text);
    if (found === null) return [];
    tags.push({ isWeak: found[1] !== undefined, opaque: found[2] ?? '' });
  }
  return tags;
}
