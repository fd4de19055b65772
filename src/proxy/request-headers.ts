/** Builds the path and the headers of a request to an upstream from those of the client's request. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import type { Mapping } from '#config';
import {
  addTraceHeaders,
  dashedName,
  deprecationHeader,
  gatewayRoot,
  grpcWebCallOf,
  lifecycleOf,
  type PublicAddress,
  pathOf,
  problem,
  requestContext,
  searchOf,
  type Trace,
  traceOf,
} from '#http';
import {
  createRewrite,
  editReferences,
  type PathRule,
  type ReferenceBase,
  readReference,
  resourceElsewhere,
  rewritePrefixes,
} from '#routing';
import { headersFromWeb } from './grpc/web.ts';
import { createHeaderRules, isEndToEnd } from './headers.ts';
import type { Identity } from './identity.ts';

export interface RequestHeadOptions {
  readonly mapping: Pick<Mapping, 'grpc' | 'hostRewrite' | 'preserveHeaderCase' | 'requestHeaders'> & PathRule;
  /** Prepended to every path: `''` or, for example, `/base`. */
  readonly path: string;
  /** Returns the origins of the service's addresses. Without it, references with a host are sent as paths. */
  readonly origins?: (() => readonly string[]) | undefined;
  readonly identity: Identity;
}

export interface RequestHead {
  /** Includes the query. */
  readonly path: string;
  /** Alternating names and values, without `host`. The names are in lower case, unless the mapping keeps their case. */
  readonly headers: string[];
  /** The `Host` header. Undefined to send the host of the address. */
  readonly host: string | undefined;
  /** The start of the public path that the service does not see. */
  readonly publicPrefix: string;
  /** The scheme of public URLs: `http` or `https`. */
  readonly publicScheme: string;
  /** The host, and the port if there is one, of public URLs. */
  readonly publicHost: string;
}

/**
 * `trace` replaces the request's own trace. The resources in `Destination` and `If` must belong to the mapping. Throws
 * `bad-path`.
 */
export type HeadOfRequest = (ctx: Context, trace?: Trace) => RequestHead;

/** Compiles the rules of the mapping. The returned function has no side effects. */
export function createRequestHead({ mapping, path: basePath, origins, identity }: RequestHeadOptions): HeadOfRequest {
  const { hostRewrite, preserveHeaderCase } = mapping;
  const rewrite = createRewrite(mapping);
  const { matchedPrefix, removedPrefix } = rewritePrefixes(mapping);
  const edits = createHeaderRules(mapping.requestHeaders);

  function innerPath(publicPath: string, search: string): string {
    const path = rewrite(publicPath);
    if (path === undefined) throw problem('bad-path');
    return basePath + path + search;
  }

  function hostFor(ctx: Context): string | undefined {
    if (hostRewrite === undefined) return requestContext(ctx).addresses.authority(ctx.req);
    return hostRewrite === '{service}' ? undefined : hostRewrite;
  }

  /** Translates a public reference to the service's own prefix, scheme and host. */
  function innerReference(ctx: Context, text: string, header: 'destination' | 'if'): string {
    const found = readReference(text, referenceBase(ctx));
    if (found === 'elsewhere' && header === 'if') return resourceElsewhere;
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
    const received = clientHeaders(ctx.req.headers, identity);
    const isWeb = mapping.grpc && grpcWebCallOf(ctx.req) !== undefined;
    const headers = isWeb ? headersFromWeb(received) : received;
    const references = editReferences(method, ctx.req.headers, (text, header) => innerReference(ctx, text, header));
    if (references !== undefined) replaceValues(headers, references);
    addForwardedHeaders(headers, ctx, address, address.path + removedPrefix, trace);
    headers.push('via', viaOf(ctx.req));
    const edited = edits?.editList(headers, ctx) ?? headers;
    if (preserveHeaderCase) restoreSpelling(edited, ctx.req);
    return {
      path: innerPath(pathOf(url), searchOf(url)),
      headers: edited,
      host: hostFor(ctx),
      publicPrefix: address.path + matchedPrefix,
      publicScheme: address.scheme,
      publicHost: address.host,
    };
  };
}

/** Returns the host and port of an origin, as `Host` has them. */
export function hostOfOrigin(origin: string): string {
  return origin.slice(origin.indexOf('//') + 2);
}

/** Blocked in addition to `x-forwarded-*`: headers that the gateway writes itself, and what they replace. */
const blockedHeaders = new Set(['forwarded', 'host', 'traceparent', 'tracestate', 'via', 'x-request-id']);

/**
 * Returns the client's headers that are forwarded: alternating names and values, the form that undici accepts. Those
 * that the client nominates in `Connection` are removed when the request context is created.
 */
function clientHeaders(headers: IncomingHttpHeaders, identity: Identity): string[] {
  const list: string[] = [];
  for (const name in headers) {
    if (!identity.has(name) && !isForwarded(name, identity)) continue;
    push(list, name, headers[name]);
  }
  return list;
}

/** A blocked name is blocked in all spellings that a service could confuse with it. */
function isForwarded(name: string, identity: Identity): boolean {
  const dashed = dashedName(name);
  if (identity.isAlias(name, dashed)) return false;
  return isEndToEnd(dashed) && !blockedHeaders.has(dashed) && !dashed.startsWith('x-forwarded-');
}

function push(list: string[], name: string, value: string | readonly string[] | undefined): void {
  if (typeof value === 'string') list.push(name, value);
  else for (const one of value ?? []) list.push(name, one);
}

function replaceValues(list: string[], values: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(values))
    for (let index = 0; index < list.length; index += 2) if (list[index] === name) list[index + 1] = value;
}

/** Spells names as the client did: the first time, if it repeats a header. */
function restoreSpelling(list: string[], { rawHeaders }: IncomingMessage): void {
  const spellings = new Map<string, string>();
  for (let index = rawHeaders.length - 2; index >= 0; index -= 2) {
    const spelled = rawHeaders[index] ?? '';
    spellings.set(spelled.toLowerCase(), spelled);
  }
  for (let index = 0; index < list.length; index += 2) {
    const name = list[index] ?? '';
    list[index] = spellings.get(name) ?? name;
  }
}

/** The public address of the running app. */
export function publicAddress(ctx: Context): PublicAddress {
  const { addresses, basePath } = requestContext(ctx);
  const { scheme, host } = addresses.publicHost(ctx.req);
  return { scheme, host, path: basePath };
}

/** The hosts and the path by which the client may refer to resources of the running app. */
export function referenceBase(ctx: Context): ReferenceBase {
  const { host, path } = publicAddress(ctx);
  const requested = requestContext(ctx).addresses.authority(ctx.req);
  return { hosts: requested === undefined ? [host] : [requested, host], path };
}

/**
 * Adds the headers that describe the client to an upstream or an auth service, from the connection or from a trusted
 * proxy, to a list of alternating names and values. `publicPrefix` is the prefix that was removed from the path. `trace`
 * replaces the client's own trace.
 */
export function addForwardedHeaders(
  list: string[],
  ctx: Context,
  { scheme, host }: PublicAddress,
  publicPrefix: string,
  trace: Trace = traceOf(ctx),
): void {
  const { addresses, requestId } = requestContext(ctx);
  list.push('x-forwarded-for', addresses.forwardedFor(ctx.req), 'x-forwarded-proto', scheme, 'x-forwarded-host', host);
  // Lets our own services link from their errors to the problem pages of the gateway.
  list.push('x-request-id', requestId, 'x-forwarded-root', gatewayRoot(ctx) || '/');
  addTraceHeaders(list, trace);
  const lifecycle = lifecycleOf(ctx);
  if (lifecycle !== undefined) list.push(deprecationHeader, lifecycle);
  if (publicPrefix !== '') list.push('x-forwarded-prefix', publicPrefix);
}

/** The gateway's name in a `Via` (RFC 9110 section 7.6.3). */
const pseudonym = 'frontdesk';

/** A request that has passed more frontdesk gateways than this is in a loop. */
const hopsMax = 4;

/** Throws `loop-detected`. */
export function rejectLoop({ headers: { via } }: IncomingMessage): void {
  if (via !== undefined && ownHopsIn(via) > hopsMax) throw problem('loop-detected');
}

/** Returns the `Via` of a request that is sent for the client's request. */
export function viaOf({ headers: { via }, httpVersion }: IncomingMessage): string {
  const own = `${httpVersion} ${pseudonym}`;
  return via === undefined ? own : `${via}, ${own}`;
}

function ownHopsIn(via: string): number {
  return via.split(',').filter((hop) => hop.trim().split(/[ \t]+/)[1] === pseudonym).length;
}

/** The `Via` entry that is added to responses. */
export const responseVia = `1.1 ${pseudonym}`;
