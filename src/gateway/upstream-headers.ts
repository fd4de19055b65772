/** The headers of a proxied exchange, both ways: what may cross, and what the gateway adds. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Context } from 'koa';
import { exchangeOf } from '#http';
import { crossesHops, nominatedBy } from './hop-by-hop.ts';
import type { Identity } from './identity.ts';

/**
 * Beside `x-forwarded-*`: what the gateway itself writes, and what some frameworks believe over the request line, the
 * connection or their own environment (`proxy` is `HTTP_PROXY` to CGI, CVE-2016-5385).
 */
const untold = new Set(['forwarded', 'host', 'proxy', 'x-original-url', 'x-real-ip', 'x-request-id', 'x-rewrite-url']);

/** The client's headers that cross to an upstream: names and values in turn, as undici takes them. */
export function upstreamRequestHeaders(headers: IncomingHttpHeaders, identity: Identity): string[] {
  const nominated = nominatedBy(headers.connection);
  const list: string[] = [];
  for (const name in headers) {
    if (!identity.has(name) && !crossesToUpstream(name, nominated, identity)) continue;
    push(list, name, headers[name]);
  }
  return list;
}

/** `_` and `-` are the same to CGI and WSGI, so what may not cross may not in the other spelling either. */
function crossesToUpstream(name: string, nominated: ReadonlySet<string>, identity: Identity): boolean {
  const spelt = name.includes('_') ? name.replaceAll('_', '-') : name;
  if (spelt !== name && (identity.has(spelt) || nominated.has(name))) return false;
  return crossesHops(spelt, nominated) && !untold.has(spelt) && !spelt.startsWith('x-forwarded-');
}

function push(list: string[], name: string, value: string | readonly string[] | undefined): void {
  if (typeof value === 'string') list.push(name, value);
  else for (const one of value ?? []) list.push(name, one);
}

/** Where the client believes the running app to be. */
export interface PublicAddress {
  readonly scheme: string;
  readonly host: string;
  /** Without a slash at the end: `''` or `/travel`. */
  readonly path: string;
}

export function publicAddress(ctx: Context): PublicAddress {
  const { addresses, basePath } = exchangeOf(ctx);
  const [scheme = '', , host = '', ...path] = addresses.origin(ctx.req).split('/');
  return {
    scheme: scheme.slice(0, -1),
    host,
    path: (path.length === 0 ? '' : `/${path.join('/')}`) + basePath,
  };
}

/**
 * What an upstream or an auth service may know of the client, from the connection or from a proxy that is trusted.
 * `publicPrefix` is what the path lost on its way.
 */
export function forwardedHeaders(ctx: Context, { scheme, host }: PublicAddress, publicPrefix: string): string[] {
  const { addresses, requestId } = exchangeOf(ctx);
  const { req } = ctx;
  const peer = (req.socket.remoteAddress ?? 'unknown').replace(/^::ffff:(?=\d+\.)/, '');
  const earlier = addresses.trusts(req) ? req.headers['x-forwarded-for'] : undefined;
  const list = [
    'x-forwarded-for',
    earlier === undefined ? peer : `${earlier}, ${peer}`,
    'x-forwarded-proto',
    scheme,
    'x-forwarded-host',
    host,
    'x-request-id',
    requestId,
  ];
  if (publicPrefix !== '') list.push('x-forwarded-prefix', publicPrefix);
  return list;
}

/**
 * Copies an upstream's response headers, but for those of the connection and those that the gateway or its host has set
 * already. `Vary` and `Set-Cookie` are lists: there both have their say.
 */
export function copyResponseHeaders(
  { res }: Context,
  headers: IncomingHttpHeaders,
  location: (value: string) => string,
): void {
  const nominated = nominatedBy(headers.connection);
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined || !crossesHops(name, nominated)) continue;
    if (name === 'set-cookie' || name === 'vary') res.appendHeader(name, value);
    else if (!res.hasHeader(name)) res.setHeader(name, name === 'location' ? location(String(value)) : value);
  }
}
