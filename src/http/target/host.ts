/** Ensures that a request has one valid host: the authority of an absolute-form target, otherwise the `Host` header. */
import type { IncomingMessage } from 'node:http';
import type { Context, Middleware, Next } from 'koa';
import { problem } from '../problem.ts';
import { authorityOf } from './paths.ts';

/** Rejects hosts that two servers could interpret differently (RFC 9112 section 3.2). Run it before using the host. */
export function createHostCheck(): Middleware {
  return function hostCheck({ req }: Context, next: Next) {
    const { url = '/', rawHeaders } = req;
    if (hasSecondHost(rawHeaders))
      throw problem('bad-request', { detail: 'The request has more than one Host header.' });
    const authority = authorityOf(url);
    const host = authority ?? req.headers.host;
    if (host !== undefined && (authority === '' || !uriHost.test(host)))
      throw problem('bad-request', { detail: 'The host must be a name or an IP address, with an optional port.' });
    if (authority !== undefined) setHost(req, authority);
    return next();
  };
}

/** The grammar of RFC 3986 section 3.2.2. `Host` may also be empty (RFC 9110 section 7.2). */
const uriHost = /^(?:[\w.~!$&'()*+,;=%-]*|\[[\da-f:.]+\])(?::\d{0,5})?$/i;

/** Node silently keeps the first of several `Host` lines, so only the raw headers show the others. */
function hasSecondHost(rawHeaders: readonly string[]): boolean {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) if (isHostName(rawHeaders[index])) count += 1;
  return count > 1;
}

function isHostName(name: string | undefined): boolean {
  return name?.length === 4 && name.toLowerCase() === 'host';
}

/** Updates the raw headers as well, because those are forwarded to services. */
function setHost(req: IncomingMessage, host: string): void {
  const index = req.rawHeaders.findIndex((name, at) => at % 2 === 0 && isHostName(name));
  if (index === -1) req.rawHeaders.push('Host', host);
  else req.rawHeaders[index + 1] = host;
  req.headers.host = host;
}
