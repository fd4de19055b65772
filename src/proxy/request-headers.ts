/** The path and the headers of a request to an upstream: what may cross from the client, and what the gateway adds. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import type { Mapping } from '#config';
import {
  gatewayRoot,
  type PublicAddress,
  pathOf,
  problem,
  requestContext,
  searchOf,
  type Trace,
  traceHeaders,
  traceOf,
} from '#http';
import {
  createRewrite,
  editReferences,
  type PathRule,
  type ReferenceBase,
  readReference,
  rewritePrefixes,
} from '#routing';
import { createHeaderRules } from './header-rules.ts';
import { crossesHops, nominatedBy } from './hop-by-hop.ts';

/** Names of headers that only an auth service may set. */
export interface IdentityNames {
  /** True for one of these names, in lower case. */
  readonly has: (name: string) => boolean;
  /** True for a name that CGI and WSGI read as one of these; `name` has `-` in place of each `_`. */
  readonly isReadAs: (name: string) => boolean;
}

export interface RequestHeadOptions {
  readonly mapping: Pick<Mapping, 'hostRewrite' | 'requestHeaders'> & PathRule;
  /** Put before every path: `''`, or `/base`. */
  readonly path: string;
  /** Of the addresses. Without them, references that name a host are sent as paths. */
  readonly origins?: (() => readonly string[]) | undefined;
  readonly identity: IdentityNames;
}

export interface RequestHead {
  /** With its query. */
  readonly path: string;
  /** Names in lower case and values in turn, without `host`. */
  readonly headers: string[];
  /** The `Host`; undefined: that of the address. */
  readonly host: string | undefined;
  /** The part of the path, as the client sees it, that the service does not. */
  readonly publicPrefix: string;
  /** `http` or `https`, as the client sees it. */
  readonly publicScheme: string;
  /** The host, with any port, in the URLs that the client sees. */
  readonly publicHost: string;
}

/**
 * `trace` goes to the service, by default the request's own. What `Destination` and `If` name must be behind the mapping.
 * Throws `bad-path` and `loop-detected`.
 */
export type HeadOfRequest = (ctx: Context, trace?: Trace) => RequestHead;

/** The function that it returns sends nothing and changes nothing. */
export function createRequestHead({ mapping, path: basePath, origins, identity }: RequestHeadOptions): HeadOfRequest {
  const { hostRewrite } = mapping;
  const rewrite = createRewrite(mapping);
  const { matchedPrefix } = rewritePrefixes(mapping);
  const { editList } = createHeaderRules(mapping.requestHeaders);

  function innerPath(publicPath: string, search: string): string {
    const path = rewrite(publicPath);
    if (path === undefined) throw problem('bad-path');
    return basePath + path + (search === '?' ? '' : search);
  }

  function hostFor(ctx: Context): string | undefined {
    if (hostRewrite === undefined) return requestContext(ctx).addresses.authority(ctx.req);
    return hostRewrite === '{service}' ? undefined : hostRewrite;
  }

  /** As the service would write it: its prefix, and the scheme and the `Host` of the request that it gets. */
  function innerReference(ctx: Context, text: string): string {
    const found = readReference(text, referenceBase(ctx));
    if (typeof found === 'string') throw problem('bad-path');
    const path = innerPath(found.path, found.search);
    const [origin = '', another] = origins?.() ?? [];
    const [scheme = '', , ownHost] = origin.split('/');
    const host = hostFor(ctx) ?? (another === undefined ? ownHost : undefined);
    return found.isAbsolute && origin !== '' && host !== undefined ? `${scheme}//${host}${path}` : path;
  }

  return function requestHead(ctx, trace) {
    const { url = '/', method } = ctx.req;
    const address = publicAddress(ctx);
    const publicPrefix = address.path + matchedPrefix;
    const headers = crossingHeaders(ctx.req.headers, identity);
    const references = editReferences(method, ctx.req.headers, (text) => innerReference(ctx, text));
    if (references !== undefined) replaceValues(headers, references);
    headers.push(...forwardedHeaders(ctx, address, publicPrefix, trace), 'via', viaOf(ctx.req));
    return {
      path: innerPath(pathOf(url), searchOf(url)),
      headers: editList(headers, ctx),
      host: hostFor(ctx),
      publicPrefix,
      publicScheme: address.scheme,
      publicHost: address.host,
    };
  };
}

/**
 * Beside `x-forwarded-*`: what the gateway itself writes, and what some frameworks believe over the request line, the
 * connection or their own environment (`proxy` is `HTTP_PROXY` to CGI, CVE-2016-5385; `new-uri` is `Destination` to Apache).
 */
const blockedHeaders = new Set([
  'forwarded',
  'host',
  'new-uri',
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
function crossingHeaders(headers: IncomingHttpHeaders, identity: IdentityNames): string[] {
  const nominated = nominatedBy(headers.connection);
  const list: string[] = [];
  for (const name in headers) {
    if (!identity.has(name) && !crossesToUpstream(name, nominated, identity)) continue;
    push(list, name, headers[name]);
  }
  return list;
}

/** CGI and WSGI read `_` and `-` as the same, so a blocked name is blocked in both spellings. */
function crossesToUpstream(name: string, nominated: ReadonlySet<string>, identity: IdentityNames): boolean {
  const spelt = name.includes('_') ? name.replaceAll('_', '-') : name;
  if (identity.isReadAs(spelt) || (spelt !== name && nominated.has(name))) return false;
  return crossesHops(spelt, nominated) && !blockedHeaders.has(spelt) && !spelt.startsWith('x-forwarded-');
}

function push(list: string[], name: string, value: string | readonly string[] | undefined): void {
  if (typeof value === 'string') list.push(name, value);
  else for (const one of value ?? []) list.push(name, one);
}

function replaceValues(list: string[], values: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(values))
    for (let index = 0; index < list.length; index += 2) if (list[index] === name) list[index + 1] = value;
}

/** Where the running app is for the client. */
export function publicAddress(ctx: Context): PublicAddress {
  const { addresses, basePath } = requestContext(ctx);
  const { scheme, host } = addresses.publicHost(ctx.req);
  return { scheme, host, path: basePath };
}

/** How the client may write resources behind the running app. */
export function referenceBase(ctx: Context): ReferenceBase {
  const { host, path } = publicAddress(ctx);
  const asked = requestContext(ctx).addresses.authority(ctx.req);
  return { hosts: asked === undefined ? [host] : [asked, host], path };
}

/**
 * What an upstream or an auth service may know of the client, from the connection or from a proxy that is trusted.
 * `publicPrefix` is what the path has lost, `trace` what is sent in place of the client's own.
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
    // So that the errors of a service lead to the pages of the gateway.
    'x-forwarded-root',
    gatewayRoot(ctx) || '/',
    ...traceHeaders(trace),
  ];
  if (publicPrefix !== '') list.push('x-forwarded-prefix', publicPrefix);
  return list;
}

/** The gateway's name in a `Via` (RFC 9110 section 7.6.3). */
const pseudonym = 'frontdesk';

/** A few gateways in a row are a chain; more of them are a loop. */
const hopsMax = 4;

/** Throws `loop-detected`. */
function viaOf({ headers, httpVersion }: IncomingMessage): string {
  const own = `${httpVersion} ${pseudonym}`;
  const { via } = headers;
  if (via === undefined) return own;
  if (ownHopsIn(via) > hopsMax) throw problem('loop-detected');
  return `${via}, ${own}`;
}

function ownHopsIn(via: string): number {
  return via.split(',').filter((hop) => hop.trim().split(/[ \t]+/)[1] === pseudonym).length;
}

/** In the response to the client. */
export const responseVia = `1.1 ${pseudonym}`;
