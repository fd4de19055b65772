/** The headers of a request to an upstream: what may cross, and what the gateway adds. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import { problem, requestContext, type Trace, traceHeaders, traceOf } from '#http';
import { crossesHops, nominatedBy } from './hop-by-hop.ts';

/** Names of headers that only an auth service may set. */
export interface IdentityNames {
  /** True for one of these names, in lower case. */
  readonly has: (name: string) => boolean;
  /** True for a name that CGI and WSGI read as one of these; `name` has `-` in place of each `_`. */
  readonly isReadAs: (name: string) => boolean;
}

/**
 * Beside `x-forwarded-*`: what the gateway itself writes, and what some frameworks believe over the request line, the
 * connection or their own environment (`proxy` is `HTTP_PROXY` to CGI, CVE-2016-5385).
 */
const untold = new Set([
  'forwarded',
  'host',
  'proxy',
  'traceparent',
  'tracestate',
  'via',
  'x-original-url',
  'x-real-ip',
  'x-request-id',
  'x-rewrite-url',
]);

/** The client's headers that cross to an upstream: names and values in turn, as undici takes them. */
export function upstreamRequestHeaders(headers: IncomingHttpHeaders, identity: IdentityNames): string[] {
  const nominated = nominatedBy(headers.connection);
  const list: string[] = [];
  for (const name in headers) {
    if (!identity.has(name) && !crossesToUpstream(name, nominated, identity)) continue;
    push(list, name, headers[name]);
  }
  return list;
}

/** `_` and `-` are the same to CGI and WSGI, so what may not cross may not in the other spelling either. */
function crossesToUpstream(name: string, nominated: ReadonlySet<string>, identity: IdentityNames): boolean {
  const spelt = name.includes('_') ? name.replaceAll('_', '-') : name;
  if (identity.isReadAs(spelt) || (spelt !== name && nominated.has(name))) return false;
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
  const { addresses, basePath } = requestContext(ctx);
  const [scheme = '', , host = '', ...path] = addresses.origin(ctx.req).split('/');
  return {
    scheme: scheme.slice(0, -1),
    host,
    path: (path.length === 0 ? '' : `/${path.join('/')}`) + basePath,
  };
}

/**
 * What an upstream or an auth service may know of the client, from the connection or from a proxy that is trusted.
 * `publicPrefix` is what the path lost on its way, `trace` what goes on in place of the client's own.
 */
export function forwardedHeaders(
  ctx: Context,
  { scheme, host }: PublicAddress,
  publicPrefix: string,
  trace: Trace = traceOf(ctx),
): string[] {
  const { addresses, requestId } = requestContext(ctx);
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
    ...traceHeaders(trace),
  ];
  if (publicPrefix !== '') list.push('x-forwarded-prefix', publicPrefix);
  return list;
}

/** Who we are in a `Via` (RFC 9110 section 7.6.3). */
const pseudonym = 'frontdesk';

/** A gateway behind a gateway is a chain; more of them than this are a circle. */
const passagesMax = 4;

/** What the next hop is told to have come through. Throws `loop-detected`. */
export function viaOf({ headers, httpVersion }: IncomingMessage): string {
  const own = `${httpVersion} ${pseudonym}`;
  const { via } = headers;
  if (via === undefined) return own;
  if (passagesIn(via) > passagesMax) throw problem('loop-detected');
  return `${via}, ${own}`;
}

function passagesIn(via: string): number {
  return via.split(',').filter((hop) => hop.trim().split(/[ \t]+/)[1] === pseudonym).length;
}

/** What the client is told that its answer has come through. */
export const answerVia = `1.1 ${pseudonym}`;
