/** `If-Match`: change it only if it is still what I read (RFC 9110 section 13.1.1). */
import type { Context } from 'koa';
import { type Problem, problem } from './problem.ts';

/** What a client holds a change against. */
export interface Precondition {
  /** True for `*`, and when one of the listed tags is the one that `isCurrent` knows. Weak tags never match. */
  readonly matches: (isCurrent: (opaque: string) => boolean) => boolean;
}

/** Throws `precondition-required` when the client holds nothing. What cannot be read matches nothing. */
export function preconditionOf(ctx: Context): Precondition {
  const { 'if-match': ifMatch } = ctx.req.headers;
  if (ifMatch === undefined) {
    throw problem('precondition-required', { detail: 'Send If-Match with the ETag that a GET of this gave you.' });
  }
  if (ifMatch.trim() === '*') return anything;
  const tags = parseEntityTags(ifMatch).filter(({ isWeak }) => !isWeak);
  return { matches: (isCurrent) => tags.some(({ opaque }) => isCurrent(opaque)) };
}

export function preconditionFailed(): Problem {
  return problem('precondition-failed', { detail: 'It has changed since: read it again and decide anew.' });
}

const anything: Precondition = { matches: () => true };

export interface EntityTag {
  readonly isWeak: boolean;
  /** What stands between the quotes. */
  readonly opaque: string;
}

/** The tags of a list, in order; none at all if any of it is no entity tag (section 8.8.3). */
export function parseEntityTags(text: string): readonly EntityTag[] {
  const tag = /(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"[ \t]*(?:,[ \t,]*|$)/y;
  const tags: EntityTag[] = [];
  // Empty members are nothing (section 5.6.1.2).
  tag.lastIndex = /^[ \t,]*/.exec(text)?.[0].length ?? 0;
  while (tag.lastIndex < text.length) {
    const found = tag.exec(text);
    if (found === null) return [];
    tags.push({ isWeak: found[1] !== undefined, opaque: found[2] ?? '' });
  }
  return tags;
}
