/** What one request carries through the house beside Koa's context: its id, its public base and what the log will say. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Context, Middleware, Next } from 'koa';
import { type Addresses, createAddresses } from './addresses.ts';
import type { Problem } from './problem.ts';
import { pathOf } from './request-target.ts';
import { sanitisePath } from './safe-path.ts';
import type { Trace } from './trace.ts';
import { createTraceIds, type TraceIds } from './trace-ids.ts';
import { closeWithConnection } from './turns.ts';

export interface Exchange {
  /** Passed through from `X-Request-Id`, or made. */
  readonly requestId: string;
  readonly addresses: Addresses;
  /** The public path of what stands at `/` where the exchange was opened, without a slash at the end: `''`, `/travel`. */
  readonly rootPath: string;
  /** The public path of what the running app calls `/`, without a slash at the end: `''`, `/travel`, `/travel/v1`. */
  basePath: string;
  /** For the access log. */
  user: string | undefined;
  mapping: string | undefined;
  upstreamMs: number | undefined;
  /** The error that was answered with. */
  problem: Problem | undefined;
  readonly traceIds: TraceIds;
  /** To be had from `traceOf`, which makes it: most requests of a quiet process need none. */
  trace: Trace | undefined;
  /** For traces: the prefix of the mapping. */
  route: string | undefined;
}

const exchangeKey = Symbol('exchange');

interface Carrier {
  [exchangeKey]?: Exchange;
}

/** The first middleware of a server: gives the request its id and tells it to the client, if that one is still there. */
export function createExchange(addresses: Addresses): Middleware {
  const traceIds = createTraceIds();
  return function exchange(ctx: Context, next: Next) {
    // A host may have taken its time before us. Whoever waits for `close` from here on, to count or to log, waits for ever.
    if (ctx.req.socket.destroyed) return undefined;
    const opened = openExchange(ctx, addresses, traceIds);
    closeWithConnection(ctx.req.socket, ctx.res);
    ctx.res.setHeader('X-Request-Id', opened.requestId);
    ctx.res.setHeader('X-Content-Type-Options', 'nosniff');
    return next();
  };
}

/** The exchange of a request; an app that runs without `createExchange` before it gets one that trusts no proxy. */
export function exchangeOf(ctx: Context): Exchange {
  return (ctx as Carrier)[exchangeKey] ?? openExchange(ctx, createAddresses(), createTraceIds());
}

/** The absolute URL of what the running app calls `/`, without a slash at the end. */
export function publicBase(ctx: Context): string {
  const { addresses, basePath } = exchangeOf(ctx);
  return addresses.origin(ctx.req) + basePath;
}

function openExchange(ctx: Context, addresses: Addresses, traceIds: TraceIds): Exchange {
  const rootPath = addresses.prefix(ctx.req) + mountPath(ctx);
  const opened: Exchange = {
    requestId: readableId(ctx.req.headers['x-request-id']) ?? randomUUID(),
    addresses,
    rootPath,
    basePath: rootPath,
    user: undefined,
    mapping: undefined,
    upstreamMs: undefined,
    problem: undefined,
    traceIds,
    trace: undefined,
    route: undefined,
  };
  (ctx as Carrier)[exchangeKey] = opened;
  return opened;
}

function readableId(id: string | readonly string[] | undefined): string | undefined {
  return typeof id === 'string' && /^[\w.-]{1,128}$/.test(id) ? id : undefined;
}

/**
 * What the hosts around us took off the path: the original path less the one we see. koa-mount's own `mountPath` holds
 * only the innermost prefix, and a connect-style host keeps the original in `req.originalUrl`. Both are compared in
 * their plain form: a base of `/` in front of `/evil.example` would be a link to another host.
 */
function mountPath(ctx: Context): string {
  const original = (ctx.req as IncomingMessage & { originalUrl?: string }).originalUrl ?? ctx.originalUrl;
  if (original === ctx.req.url) return '';
  const full = sanitisePath(pathOf(original));
  const inner = sanitisePath(pathOf(ctx.url));
  if (full === undefined || inner === undefined) return '';
  if (full.endsWith(inner)) return withoutSlashAtEnd(full.slice(0, full.length - inner.length));
  return inner === '/' ? full : '';
}

function withoutSlashAtEnd(path: string): string {
  let end = path.length;
  while (path[end - 1] === '/') end -= 1;
  return path.slice(0, end);
}
