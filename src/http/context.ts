/** What one request carries beside Koa's context: its id, its public base, its trace, and fields for the log. */
import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Context, Middleware, Next } from 'koa';
import { type Addresses, createAddresses } from './addresses.ts';
import type { Problem } from './problem.ts';
import { closeWithConnection } from './server/queued-responses.ts';
import { pathOf, sanitisePath } from './target/paths.ts';
import { boundTracestate, createTraceIds, parseTraceparent, type Trace, type TraceIds } from './trace.ts';

export interface RequestContext {
  /** Passed through from `X-Request-Id`, or made. */
  readonly requestId: string;
  readonly addresses: Addresses;
  /** The public path of what was `/` when the request came in, without a slash at the end: `''`, `/travel`. */
  readonly rootPath: string;
  /** The public path of what the running app calls `/`, without a slash at the end: `''`, `/travel`, `/travel/v1`. */
  basePath: string;
  /** For the access log. */
  user: string | undefined;
  mapping: string | undefined;
  /** Where the mapping leads, the same for all mappings that lead there: `hotel`, `10.0.0.5:9001`. */
  service: string | undefined;
  /** The origin that was tried last. */
  upstream: string | undefined;
  upstreamMs: number | undefined;
  /** The error that was sent. */
  problem: Problem | undefined;
  readonly traceIds: TraceIds;
  /** Read it with `traceOf`, which makes it when it is needed: most requests of a quiet process need none. */
  trace: Trace | undefined;
  /** For traces: the prefix of the mapping. */
  route: string | undefined;
}

/** Names the user to a service, which trusts it as it comes: a gateway must not let clients send it. */
export const userHeader = 'x-travel-user';

const contextKey = Symbol('request context');

interface Carrier {
  [contextKey]?: RequestContext;
}

/**
 * The first middleware of a server: gives the request its id, and sends the id to the client. By default it trusts no
 * proxy; `createAddresses` makes addresses that do.
 */
export function createRequestContext(addresses: Addresses = createAddresses()): Middleware {
  const traceIds = createTraceIds();
  return function requestContextOpened(ctx: Context, next: Next) {
    // A host may have been slow before us. The response has closed then, and what counts or logs at `close` would wait for ever.
    if (ctx.req.socket.destroyed) return undefined;
    closeWithConnection(ctx.req, ctx.res);
    const opened = openContext(ctx, addresses, traceIds);
    // Most stages listen for its end, and a stream does six times: more than the ten that Node takes for a leak.
    ctx.res.setMaxListeners(0);
    ctx.res.setHeader('X-Request-Id', opened.requestId);
    if (!ctx.res.hasHeader(nosniff)) {
      ctx.res.setHeader(nosniff, 'nosniff');
      (ctx.res as Marked)[ownNosniff] = true;
    }
    return next();
  };
}

const nosniff = 'X-Content-Type-Options';

/** Marks a response that has the header from here, and not from a host. A property, since a WeakSet of all responses costs each garbage collection. */
const ownNosniff = Symbol('own nosniff');

interface Marked extends ServerResponse {
  [ownNosniff]?: boolean;
}

/** For the response of a service, which decides itself whether its types may be guessed. False when a host has decided. */
export function takeBackNosniff(res: ServerResponse): boolean {
  if ((res as Marked)[ownNosniff] !== true) return false;
  (res as Marked)[ownNosniff] = false;
  res.removeHeader(nosniff);
  return true;
}

/** An app that runs without `createRequestContext` before it gets a context that trusts no proxy. */
export function requestContext(ctx: Context): RequestContext {
  return (ctx as Carrier)[contextKey] ?? openContext(ctx, createAddresses(), createTraceIds());
}

/** The absolute URL of what the running app calls `/`, without a slash at the end. */
export function publicBase(ctx: Context): string {
  const { addresses, basePath } = requestContext(ctx);
  return addresses.origin(ctx.req) + basePath;
}

/** The public path of the first gateway on the request's way, or of this server, without a slash at the end: `''`, `/travel`. */
export function gatewayRoot(ctx: Context): string {
  const { addresses, rootPath } = requestContext(ctx);
  return addresses.gatewayRoot(ctx.req) ?? rootPath;
}

/** The trace that the request belongs to: the one that it came with, or a new one, with a span id of ours. */
export function traceOf(ctx: Context): Trace {
  const context = requestContext(ctx);
  context.trace ??= openTrace(ctx.req.headers, context.traceIds);
  return context.trace;
}

function openContext(ctx: Context, addresses: Addresses, traceIds: TraceIds): RequestContext {
  const rootPath = addresses.prefix(ctx.req) + mountPath(ctx);
  const opened: RequestContext = {
    requestId: readableId(ctx.req.headers['x-request-id']) ?? randomUUID(),
    addresses,
    rootPath,
    basePath: rootPath,
    user: undefined,
    mapping: undefined,
    service: undefined,
    upstream: undefined,
    upstreamMs: undefined,
    problem: undefined,
    traceIds,
    trace: undefined,
    route: undefined,
  };
  (ctx as Carrier)[contextKey] = opened;
  return opened;
}

function readableId(id: string | readonly string[] | undefined): string | undefined {
  return typeof id === 'string' && /^[\w.-]{1,128}$/.test(id) ? id : undefined;
}

/**
 * The prefix that the hosts around us took off the path: the original path less the one that we see. koa-mount's own
 * `mountPath` has only the innermost prefix, and a connect-style host keeps the original in `req.originalUrl`. Both are
 * compared in their plain form: a base of `/` before `/evil.example` would be a link to another host.
 */
function mountPath(ctx: Context): string {
  const original = (ctx.req as IncomingMessage & { originalUrl?: string }).originalUrl ?? ctx.originalUrl;
  if (original === ctx.req.url) return '';
  const [sent, seen] = [pathOf(original), pathOf(ctx.url)];
  const full = sanitisePath(sent);
  const inner = sanitisePath(`/${seen.replace(/^\/+/, '')}`);
  // The refusal of such a path is below the prefix, too.
  if (full === undefined || inner === undefined)
    return sent.endsWith(seen) ? withoutSlashAtEnd(sanitisePath(sent.slice(0, sent.length - seen.length)) ?? '') : '';
  if (full.endsWith(inner)) return withoutSlashAtEnd(full.slice(0, full.length - inner.length));
  return inner === '/' ? full : '';
}

function withoutSlashAtEnd(path: string): string {
  let end = path.length;
  while (path[end - 1] === '/') end -= 1;
  return path.slice(0, end);
}

/** The party that begins a trace decides whether it is sampled: a trace that begins here is recorded nowhere, so it is not. */
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
