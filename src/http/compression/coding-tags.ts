/** The entity tags of compressed responses in preconditions: `"a"` becomes `"a-gzip"` for gzip (RFC 9110 section 8.8.3). */
import type { Context } from 'koa';
import { parseEntityTags } from '../precondition.ts';
import { type Coding, codings } from './codings.ts';
import { textOf } from './response-rules.ts';

const preconditions = ['if-match', 'if-none-match'] as const;

export function hasPrecondition({ req: { headers } }: Context): boolean {
  return headers['if-match'] !== undefined || headers['if-none-match'] !== undefined;
}

/**
 * Lets the service, which knows only its own tags, recognise those of compressed responses. For a GET, a tag must be that
 * of the coding which the response would have. A change may name any representation of the resource.
 */
export function addOwnTags({ req, method }: Context, chosen: Coding | undefined): void {
  for (const name of preconditions) {
    const value = req.headers[name];
    if (value === undefined) continue;
    const accepted = method === 'GET' || method === 'HEAD' ? [chosen] : codings;
    const own = parseEntityTags(value).flatMap(({ isWeak, opaque }) => {
      const suffix = accepted.map((coding) => `-${coding}`).find((one) => opaque.endsWith(one));
      return suffix === undefined ? [] : [`${isWeak ? 'W/' : ''}"${opaque.slice(0, -suffix.length)}"`];
    });
    if (own.length > 0) req.headers[name] = `${value}, ${own.join(', ')}`;
  }
}

/**
 * Gives a 304 the tag that the client has: a cache updates only the stored response with the same tag (RFC 9111 section
 * 4.3.4). A service over HTTP matches the weak tag of a compressed response, but returns its own.
 */
export function restoreKnownTag({ req, res }: Context, chosen: Coding | undefined, isOwn: boolean): void {
  const tag = textOf(res, 'etag');
  const { 'if-none-match': given = '' } = req.headers;
  if (!tag.startsWith('"') || given === '*') return;
  const opaque = tag.slice(1, -1);
  const known = parseEntityTags(given);
  const isKnown = (text: string, weak: boolean) => known.some((one) => one.opaque === text && one.isWeak === weak);
  const compressed = chosen && `${opaque}-${chosen}`;
  if (!isOwn && !isKnown(opaque, false) && isKnown(opaque, true)) res.setHeader('ETag', `W/${tag}`);
  if (isOwn && compressed && known.some((one) => one.opaque === compressed)) res.setHeader('ETag', `"${compressed}"`);
}
