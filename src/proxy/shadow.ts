/** Copies of requests for a second service, of which the client notices nothing, whatever becomes of them. */
import type { IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import type { Dispatcher } from 'undici';
import type { Mapping } from '#config';
import { isBodyWhole, type Logger, pathOf, searchOf } from '#http';
import { createRewrite, rewritePrefixes } from '#routing';
import { copyBody } from './body-copy.ts';
import type { Attempt, Cluster } from './cluster.ts';
import { createHeaderRules } from './header-rules.ts';
import { sendCopy } from './shadow-exchange.ts';
import { type Timer, unrefTimer } from './timer.ts';
import type { IdentityNames } from './upstream-headers.ts';
import { forwardedHeaders, publicAddress, upstreamRequestHeaders, viaOf } from './upstream-headers.ts';

export interface ShadowOptions {
  /** The record with `shadow: true`. */
  readonly mapping: Mapping;
  /** Its circuit breakers bound the copies under way. */
  readonly cluster: Cluster;
  /** Put before every path: `''`, or `/base`. */
  readonly path: string;
  readonly identity: IdentityNames;
  readonly logger: Logger;
  /** Until the whole answer, in milliseconds; 0: without end. */
  readonly timeoutMs: number;
  /** A request with a larger body is not copied. @default 64 KiB */
  readonly bodyBytesMax?: number;
  readonly timer?: Timer;
}

export interface ShadowCounts {
  /** Sent on their way. */
  copies: number;
  /** Of them, those without a whole answer. */
  failures: number;
  /** Not sent: too many under way, a path that cannot be rewritten, or a body that is too large, broke off, or was read before or never. */
  skipped: number;
}

export interface Shadow {
  /** To be called after the limit and before anything reads the body or changes the path. Never throws, and never waits. */
  readonly copy: (ctx: Context) => void;
  readonly counts: Readonly<ShadowCounts>;
}

export function createShadow(options: ShadowOptions): Shadow {
  const { mapping, cluster, identity, logger, timeoutMs, timer = unrefTimer, bodyBytesMax = 64 * 1024 } = options;
  const rewrite = createRewrite(mapping);
  const { matchedPrefix } = rewritePrefixes(mapping);
  const rules = createHeaderRules(mapping.requestHeaders);
  const counts: ShadowCounts = { copies: 0, failures: 0, skipped: 0 };

  function requestTo(origin: string, ctx: Context): Dispatcher.DispatchOptions {
    const path = rewrite(pathOf(ctx.url));
    if (path === undefined) throw new TypeError('the path cannot be rewritten');
    const address = publicAddress(ctx);
    const headers = upstreamRequestHeaders(ctx.req.headers, identity);
    headers.push(...forwardedHeaders(ctx, address, address.path + matchedPrefix), 'via', viaOf(ctx.req));
    headers.push('host', shadowHost(mapping.hostRewrite ?? authorityOf(origin)));
    return {
      method: ctx.method as Dispatcher.HttpMethod,
      path: options.path + path + searchOf(ctx.url),
      headers: rules.editList(headers, ctx),
    };
  }

  function send(attempt: Attempt, request: Dispatcher.DispatchOptions): void {
    counts.copies += 1;
    sendCopy(attempt, request, { timeoutMs, timer, onFailure });
  }

  function onFailure(cause: unknown): void {
    counts.failures += 1;
    logger.debug?.({ mapping: mapping.name, err: cause }, 'a copy of a request failed');
  }

  function skip(cause: unknown): void {
    counts.skipped += 1;
    logger.debug?.({ mapping: mapping.name, err: cause }, 'a request was not copied');
  }

  function skipTaken(attempt: Attempt, cause: unknown): void {
    attempt.settle({ kind: 'abandoned' });
    attempt.release();
    skip(cause);
  }

  /** The place is taken before the body is there: what is held of bodies is bounded by the same circuit breaker. */
  function place(ctx: Context, attempt: Attempt): void {
    const { req } = ctx;
    const request = requestTo(attempt.origin, ctx);
    if (!hasBody(req)) {
      send(attempt, request);
      return;
    }
    if (!isBodyWhole(req) || Number(req.headers['content-length']) > bodyBytesMax) throw unfitBody(bodyBytesMax);
    copyBody(req, bodyBytesMax, (body) => {
      if (body === undefined) skipTaken(attempt, unfitBody(bodyBytesMax));
      else send(attempt, { ...request, body });
    });
  }

  return Object.freeze({
    copy(ctx: Context) {
      let attempt: Attempt | undefined;
      try {
        attempt = cluster.attempt();
        place(ctx, attempt);
      } catch (cause) {
        if (attempt === undefined) skip(cause);
        else skipTaken(attempt, cause);
      }
    },
    counts,
  });
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

function unfitBody(bytesMax: number): RangeError {
  return new RangeError(`the body has more than ${bytesMax} bytes, broke off, or was read before or never`);
}

function authorityOf(origin: string): string {
  return origin.slice(origin.indexOf('//') + 2);
}

/** As Envoy writes it: `hotel-shadow:8080`. */
function shadowHost(host: string): string {
  return host.replace(/(?=:\d+$)|(?<!:\d+)$/, '-shadow');
}
