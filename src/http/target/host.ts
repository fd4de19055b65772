/** One valid host for each request: no second `Host` line, and the authority of an absolute target in place of `Host`. */
import type { IncomingMessage } from 'node:http';
import type { Context, Middleware, Next } from 'koa';
import { problem } from '../problem.ts';
import { authorityOf } from './paths.ts';

/** Refuses what two servers could read as different hosts (RFC 9112 section 3.2), before anything reads the host. */
export function createHostCheck(): Middleware {
  return function oneHost({ req }: Context, next: Next) {
    const { url = '/', rawHeaders } = req;
    if (hasSecondHost(rawHeaders)) throw problem('bad-request', { detail: 'There is more than one Host header.' });
    const authority = authorityOf(url);
    const host = authority ?? req.headers.host;
    if (host !== undefined && (authority === '' || !uriHost.test(host)))
      throw problem('bad-request', { detail: 'The host is not a name or an address with an optional port.' });
    if (authority !== undefined) setHost(req, authority);
    return next();
  };
}

/** RFC 3986 section 3.2.2, and an empty one (RFC 9110 section 7.2). */
const uriHost = /^(?:[\w.~!$&'()*+,;=%-]*|\[[\da-f:.]+\])(?::\d{0,5})?$/i;

/** Node keeps the first of several lines, and says so nowhere else. */
function hasSecondHost(rawHeaders: readonly string[]): boolean {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) if (isHostName(rawHeaders[index])) count += 1;
  return count > 1;
}

function isHostName(name: string | undefined): boolean {
  return name?.length === 4 && name.toLowerCase() === 'host';
}

/** In both forms of the headers, since a service gets the raw ones. */
function setHost(req: IncomingMessage, host: string): void {
  const index = req.rawHeaders.findIndex((name, at) => at % 2 === 0 && isHostName(name));
  if (index === -1) req.rawHeaders.push('Host', host);
  else req.rawHeaders[index + 1] = host;
  req.headers.host = host;
}
