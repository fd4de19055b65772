/** The state of a request besides Koa's context: request id, public base path, trace, and fields for the access log. */
import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Context, Middleware, Next } from 'koa';
import { type Addresses, createAddresses } from './addresses.ts';
import { hasClientLeft } from './log/final-status.ts';
import type { Problem } from './problem.ts';
import { closeWithConnection, sendHeadAsBytes } from './server/node-fixes.ts';
import { removeNominated } from './server/received-headers.ts';
import { pathOf, sanitisePath } from './target.ts';
import { boundTracestate, createTraceIds, parseTraceparent, type Trace, type TraceIds } from './trace.ts';

export interface RequestContext {
  /** Taken from `X-Request-Id` if valid, otherwise generated. */
  readonly requestId: string;
  /** When the request arrived, in the milliseconds of `performance.now`. */
  readonly arrivedAtMs: number;
  readonly addresses: Addresses;
  /** The names that the client nominates in `Connection`, in lower case. */
  readonly nominated: ReadonlySet<string>;
  /** The public path of this server's root, without a trailing slash: `''`, `/shop`. */
  readonly rootPath: string;
  /** Whether this server has a page at its root. */
  readonly hasHome: boolean;
  /** The public path of the current app's root, without a trailing slash: `''`, `/shop`, `/shop/v1`. */
  basePath: string;
  /** The authenticated user, for the access log. */
  user: string | undefined;
  /** The name of the API key that the client sent, for the access log. */
  apiKey: string | undefined;
  /** The name of the matched mapping, for the access log. */
  mapping: string | undefined;
  /** The service that the mapping routes to, which several mappings may share: `orders`, `10.0.0.5:9001`. */
  service: string | undefined;
  /** The origin of the last attempt. */
  upstream: string | undefined;
  upstreamMs: number | undefined;
  /** The protocol that the client asked to switch to, although the mapping does not allow it. */
  refusedUpgrade: string | undefined;
  /** The error that was sent to the client. */
  problem: Problem | undefined;
  /** The status of a gRPC call, ours or that of its service. */
  grpcStatus: number | undefined;
  readonly traceIds: TraceIds;
  /** Read it with `traceOf`, which creates it on demand: with logging and tracing off, most requests never need one. */
  trace: Trace | undefined;
  /** The prefix of the matched mapping, for traces. */
  route: string | undefined;
  /** What a gateway in this process announces about the requested version, in the form of `formatLifecycle`. */
  lifecycle: string | undefined;
  /** The names of the documented versions beside the current app and of the app itself, such as `v1` and `v2`. */
  versions: readonly string[];
  /** True once the service has responded, in whatever way. */
  isAnswered: boolean;
  /** Call it when the service breaks off a response that has begun. Undefined if no middleware reports problems. */
  reportBreak: ((ctx: Context, found: Problem) => void) | undefined;
}

/** Passes the user's name to services, which trust it blindly: a gateway must strip it from client requests. */
export const userHeader = 'x-travel-user';

/** Passes the name of the API key that the client sent to services. */
export const keyNameHeader = 'x-api-key-name';

const contextKey = Symbol('request context');

interface Carrier {
  [contextKey]?: RequestContext;
}

export interface RequestContextOptions {
  /** Whether this server has a page at its root, to which its other pages link. @default false */
  readonly hasHome?: boolean;
}

/**
 * The first middleware of a server: removes the headers that the client nominates in `Connection`, assigns the request
 * id and sends it to the client. Trusts no proxy by default; pass the result of `createAddresses` to trust some.
 */
export function createRequestContext(
  addresses: Addresses = createAddresses(),
  { hasHome = false }: RequestContextOptions = {},
): Middleware {
  const server = { addresses, hasHome, traceIds: createTraceIds() };
  return function openRequestContext(ctx: Context, next: Next) {
    // The client may have left while the host application was busy. `close` has then been emitted already, so code that
    // counts or logs on it would wait forever.
    if (ctx.req.socket.destroyed) return undefined;
    closeWithConnection(ctx.req, ctx.res);
    const opened = openContext(ctx, server);
    // Most stages listen for the end of the response, and piping a stream adds six listeners. Node would warn of a leak
    // above ten.
    ctx.res.setMaxListeners(0);
    // Node reports a write after the end of the response here, and without a listener would end the process.
    ctx.res.on('error', (error) => void (hasClientLeft(ctx.res) || ctx.app.emit('error', error, ctx)));
    ctx.res.setHeader('X-Request-Id', opened.requestId);
    if (!ctx.res.hasHeader(nosniff)) {
      ctx.res.setHeader(nosniff, 'nosniff');
      (ctx.res as Marked)[ownNosniff] = true;
    }
    return next();
  };
}

const nosniff = 'X-Content-Type-Options';

/** Marks a response whose header was set here, not by the host. */
const ownNosniff = Symbol('own nosniff');

interface Marked extends ServerResponse {
  [ownNosniff]?: boolean;
}

/** Removes our `nosniff` so that a proxied service decides for itself. Returns false if the host set the header. */
export function removeOwnNosniff(res: ServerResponse): boolean {
  if ((res as Marked)[ownNosniff] !== true) return false;
  (res as Marked)[ownNosniff] = false;
  res.removeHeader(nosniff);
  return true;
}

/** Returns the context of the request. Without `createRequestContext`, opens one that trusts no proxy. */
export function requestContext(ctx: Context): RequestContext {
  return (
    (ctx as Carrier)[contextKey] ??
    openContext(ctx, { addresses: createAddresses(), hasHome: false, traceIds: createTraceIds() })
  );
}

/** The absolute URL of the current app's root, without a trailing slash. */
export function publicBase(ctx: Context): string {
  const { addresses, basePath } = requestContext(ctx);
  return addresses.origin(ctx.req) + basePath;
}

/** The public path of the outermost gateway, or of this server if there is none in front: `''`, `/shop`. */
export function gatewayRoot(ctx: Context): string {
  const { addresses, rootPath } = requestContext(ctx);
  return addresses.gatewayRoot(ctx.req) ?? rootPath;
}

/** The public path of the page at the root of the gateway or of this server. Undefined if there may be none. */
export function homeOf(ctx: Context): string | undefined {
  const { addresses, rootPath, hasHome } = requestContext(ctx);
  const root = addresses.gatewayRoot(ctx.req) ?? (hasHome ? rootPath : undefined);
  return root === undefined ? undefined : `${root}/`;
}

/** What a gateway announces about the requested version of an API. Times are in milliseconds since the epoch. */
export interface Lifecycle {
  readonly deprecatedAtMs?: number | undefined;
  readonly endsAtMs?: number | undefined;
  /** The version that replaces it: a path of the gateway, or a URL. */
  readonly successor?: string | undefined;
}

/** Passes on to a service what the gateway announces about the version. */
export const deprecationHeader = 'x-forwarded-deprecation';

/** Writes the header that passes it on: whether the version is deprecated, and parameters (RFC 9651 section 3.3). */
export function formatLifecycle({ deprecatedAtMs, endsAtMs, successor }: Lifecycle): string {
  return [
    deprecatedAtMs === undefined ? '?0' : `?1;since=@${Math.floor(deprecatedAtMs / 1000)}`,
    ...(endsAtMs === undefined ? [] : [`sunset=@${Math.floor(endsAtMs / 1000)}`]),
    ...(successor === undefined ? [] : [`successor="${successor}"`]),
  ].join(';');
}

/** The opposite of `formatLifecycle`, which writes the only quoted text last. `isDeprecated` is true without a time if the header has none. */
export function parseLifecycle(text: string): Lifecycle & { readonly isDeprecated: boolean } {
  const [times = ''] = text.split('"', 1);
  const msOf = (name: string) => {
    const [, seconds] = new RegExp(`;\\s*${name}=@(\\d{1,12})`).exec(times) ?? [];
    return seconds === undefined ? undefined : Number(seconds) * 1000;
  };
  const [, successor] = /;\s*successor="((?:https?:\/)?\/[^"\\]*)"/i.exec(text) ?? [];
  return { isDeprecated: !text.startsWith('?0'), deprecatedAtMs: msOf('since'), endsAtMs: msOf('sunset'), successor };
}

/**
 * What a gateway, in this process or in front of it, announces about the requested version, in the form of
 * `formatLifecycle`.
 */
export function lifecycleOf(ctx: Context): string | undefined {
  const { lifecycle, addresses } = requestContext(ctx);
  if (lifecycle !== undefined) return lifecycle;
  const sent = ctx.req.headers[deprecationHeader];
  return typeof sent === 'string' && addresses.trusts(ctx.req) ? sent : undefined;
}

/** The trace that the request belongs to, continued from its headers or new, with a span id of our own. */
export function traceOf(ctx: Context): Trace {
  const context = requestContext(ctx);
  context.trace ??= openTrace(ctx.req.headers, context.traceIds);
  return context.trace;
}

type Server = Pick<RequestContext, 'addresses' | 'hasHome' | 'traceIds'>;

function openContext(ctx: Context, { addresses, hasHome, traceIds }: Server): RequestContext {
  sendHeadAsBytes(ctx.res);
  const nominated = removeNominated(ctx.req);
  const rootPath = addresses.prefix(ctx.req) + mountPath(ctx);
  const opened: RequestContext = {
    requestId: validId(ctx.req.headers['x-request-id']) ?? randomUUID(),
    arrivedAtMs: performance.now(),
    addresses,
    nominated,
    rootPath,
    hasHome,
    basePath: rootPath,
    user: undefined,
    apiKey: undefined,
    mapping: undefined,
    service: undefined,
    upstream: undefined,
    upstreamMs: undefined,
    refusedUpgrade: undefined,
    problem: undefined,
    grpcStatus: undefined,
    traceIds,
    trace: undefined,
    route: undefined,
    lifecycle: undefined,
    versions: [],
    isAnswered: false,
    reportBreak: undefined,
  };
  (ctx as Carrier)[contextKey] = opened;
  return opened;
}

function validId(id: string | readonly string[] | undefined): string | undefined {
  return typeof id === 'string' && /^[\w.-]{1,128}$/.test(id) ? id : undefined;
}

/**
 * The prefix that host applications stripped from the path: the original path minus the current one. koa-mount's
 * `mountPath` has only the innermost prefix, and a connect-style host keeps the original in `req.originalUrl`. Compares
 * sanitised paths, because a base path of `/` before `/evil.example` would form a link to another host.
 */
function mountPath(ctx: Context): string {
  const original = (ctx.req as IncomingMessage & { originalUrl?: string }).originalUrl ?? ctx.originalUrl;
  if (original === ctx.req.url) return '';
  const [sent, seen] = [pathOf(original), pathOf(ctx.url)];
  const full = sanitisePath(sent);
  const inner = sanitisePath(`/${seen.replace(/^\/+/, '')}`);
  // The path will be rejected, but links in the error response need the prefix too.
  if (full === undefined || inner === undefined)
    return sent.endsWith(seen)
      ? withoutTrailingSlashes(sanitisePath(sent.slice(0, sent.length - seen.length)) ?? '')
      : '';
  if (full.endsWith(inner)) return withoutTrailingSlashes(full.slice(0, full.length - inner.length));
  return inner === '/' ? full : '';
}

function withoutTrailingSlashes(path: string): string {
  let end = path.length;
  while (path[end - 1] === '/') end -= 1;
  return path.slice(0, end);
}

/** Keeps the sampling flag of the caller. A trace that starts here is not sampled, because nothing records it. */
function openTrace({ traceparent, tracestate }: IncomingHttpHeaders, ids: TraceIds): Trace {
  const parent = parseTraceparent(traceparent);
  return {
    traceId: parent?.traceId ?? ids.traceId(),
    spanId: ids.spanId(),
    flags: parent?.flags ?? 0,
    state: parent && boundTracestate(tracestate),
    startCall: undefined,
  };
}
