/** To a service across HTTP: streamed both ways, bounded in time, and silent about why it failed. */
import type { Readable } from 'node:stream';
import type { Context } from 'koa';
import type { Dispatcher } from 'undici';
import { exchangeOf, Problem } from '#http';
import { upstreamProblem } from './failures.ts';
import type { Forward, PathRule } from './forward-local.ts';
import type { Identity } from './identity.ts';
import { upstreamBody } from './request-body.ts';
import { restoreLocation, rewritePath } from './rewrite.ts';
import { copyResponseHeaders, upstreamRequestHeaders } from './upstream-headers.ts';

export interface RemoteForwardOptions {
  readonly rule: PathRule;
  /** Gives scheme, host and port of the service. */
  readonly origin: () => string;
  readonly dispatcher: Dispatcher;
  /** Until the response headers; the body that follows may take its time. */
  readonly timeoutMs: number;
  readonly bodyBytesMax: number;
  readonly identity: Identity;
}

export function createRemoteForward(options: RemoteForwardOptions): Forward {
  const { rule, dispatcher, timeoutMs, bodyBytesMax, identity } = options;
  return async function forwardRemote(ctx) {
    const exchange = exchangeOf(ctx);
    const origin = options.origin();
    const publicPrefix =
      rule.rewrite === '' ? exchange.basePath : exchange.basePath + (rule.prefix === '/' ? '' : rule.prefix);
    const startedAt = performance.now();
    const answer = await underDeadline(ctx, timeoutMs, (signal) =>
      dispatcher.request({
        origin,
        method: ctx.method as Dispatcher.HttpMethod,
        path: rewritePath(ctx.path, rule.prefix, rule.rewrite) + ctx.search,
        headers: upstreamRequestHeaders(ctx, publicPrefix, identity),
        body: upstreamBody(ctx, bodyBytesMax),
        headersTimeout: 0,
        signal,
      }),
    );
    exchange.upstreamMs = performance.now() - startedAt;
    const restoration = {
      ...rule,
      basePath: exchange.basePath,
      upstreamOrigin: origin,
    };
    answerWith(ctx, answer, (value) => restoreLocation(value, restoration));
  };
}

/** Why a request to an upstream was given up: our own deadline, or the client's leaving. */
class GivenUp extends Error {
  override readonly name = 'GivenUp';
  readonly code: string;

  constructor(code: 'ETIMEDOUT' | 'ECONNRESET', message: string) {
    super(message);
    this.code = code;
  }
}

/** undici's own timers are coarse (200 ms fired after 682), so the deadline is ours; a client that leaves ends the request too. */
async function underDeadline<T>(ctx: Context, timeoutMs: number, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const timer = setTimeout(
    () => controller.abort(new GivenUp('ETIMEDOUT', `no response headers within ${timeoutMs} ms`)),
    timeoutMs,
  );
  const onClose = () => controller.abort(new GivenUp('ECONNRESET', 'the client left'));
  ctx.res.once('close', onClose);
  try {
    return await run(controller.signal);
  } catch (cause) {
    throw cause instanceof Problem ? cause : upstreamProblem(cause);
  } finally {
    clearTimeout(timer);
    ctx.res.removeListener('close', onClose);
  }
}

function answerWith(ctx: Context, answer: Dispatcher.ResponseData, location: (value: string) => string): void {
  ctx.status = answer.statusCode;
  copyResponseHeaders(ctx, answer.headers, location);
  if (ctx.method === 'HEAD' || answer.statusCode === 204 || answer.statusCode === 304) {
    answer.body.resume();
    ctx.res.statusCode = answer.statusCode;
    return;
  }
  const typed = answer.headers['content-type'] !== undefined;
  ctx.body = answer.body as Readable;
  if (!typed) ctx.remove('Content-Type');
}
