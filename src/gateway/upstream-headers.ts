/** The headers of a proxied exchange, both ways: what may cross, and what the gateway adds. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Context } from 'koa';
import { exchangeOf } from '#http';
import { crossesHops, nominatedBy } from './hop-by-hop.ts';
import type { Identity } from './identity.ts';

/** What the gateway itself writes; a client's values count only as the history of a trusted proxy's. */
const written = new Set([
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-prefix',
  'x-forwarded-proto',
  'forwarded',
  'x-request-id',
]);

/** Names and values in turn, as undici takes them. `publicPrefix` is what the path lost on its way. */
export function upstreamRequestHeaders(ctx: Context, publicPrefix: string, identity: Identity): string[] {
  const { headers } = ctx.req;
  const nominated = nominatedBy(headers.connection);
  const list: string[] = [];
  for (const name in headers) {
    if (!crossesHops(name, nominated) || written.has(name) || identity.isForged(name)) continue;
    push(list, name, headers[name]);
  }
  return list.concat(forwardedHeaders(ctx, publicPrefix));
}

function push(list: string[], name: string, value: string | readonly string[] | undefined): void {
  if (typeof value === 'string') list.push(name, value);
  else for (const one of value ?? []) list.push(name, one);
}

/** What an upstream or an auth service may know of the client, from the connection or from a proxy that is trusted. */
export function forwardedHeaders(ctx: Context, publicPrefix: string): string[] {
  const { addresses, requestId } = exchangeOf(ctx);
  const { req } = ctx;
  const peer = req.socket.remoteAddress ?? '';
  const earlier = addresses.trusts(req) ? req.headers['x-forwarded-for'] : undefined;
  const origin = addresses.origin(req);
  const list = [
    'x-forwarded-for',
    earlier === undefined ? peer : `${earlier}, ${peer}`,
    'x-forwarded-proto',
    addresses.scheme(req),
    'x-forwarded-host',
    origin.slice(origin.indexOf('//') + 2),
    'x-request-id',
    requestId,
  ];
  if (publicPrefix !== '') list.push('x-forwarded-prefix', publicPrefix);
  return list;
}

/** Copies an upstream's response headers, but for those of the connection and those that the gateway has set already. */
export function copyResponseHeaders(
  ctx: Context,
  headers: IncomingHttpHeaders,
  location: (value: string) => string,
): void {
  const nominated = nominatedBy(headers.connection);
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined || !crossesHops(name, nominated) || ctx.res.hasHeader(name)) continue;
    ctx.res.setHeader(name, name === 'location' ? location(String(value)) : value);
  }
}
