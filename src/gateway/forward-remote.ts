/** To a service across HTTP: streamed both ways, bounded in time, and silent about why it failed. */
import type { Context } from 'koa';
import type { Dispatcher } from 'undici';
import { exchangeOf, Problem } from '#http';
import { type GiveUpSignal, hasLeft, underDeadline } from './deadline.ts';
import { upstreamProblem } from './failures.ts';
import type { Forward, PathRule } from './forward-local.ts';
import type { Identity } from './identity.ts';
import { upstreamBody } from './request-body.ts';
import { type PathRestoration, restoreLocation, rewritePath } from './rewrite.ts';
import { copyResponseHeaders, forwardedHeaders, publicAddress, upstreamRequestHeaders } from './upstream-headers.ts';

export interface RemoteForwardOptions {
  readonly rule: PathRule;
  /** Gives scheme, host and port of the service. */
  readonly origin: () => string;
  /** Put before every path: `''`, or `/base`. */
  readonly path: string;
  readonly dispatcher: Dispatcher;
  /** Until the response headers; the body that follows may take its time. */
  readonly timeoutMs: number;
  readonly bodyBytesMax: number;
  readonly identity: Identity;
}

export function createRemoteForward(options: RemoteForwardOptions): Forward {
  const { rule, dispatcher, timeoutMs, bodyBytesMax, identity } = options;
  const taken = rule.rewrite === '' || rule.prefix === '/' ? '' : rule.prefix;
  const innerPrefix = options.path + (rule.rewrite === '/' ? '' : rule.rewrite);
  return async function forwardRemote(ctx) {
    const origin = options.origin();
    const address = publicAddress(ctx);
    const publicPrefix = address.path + taken;
    const answer = await ask(ctx, (signal) =>
      dispatcher.request({
        origin,
        method: ctx.method as Dispatcher.HttpMethod,
        path: options.path + rewritePath(ctx.path, rule.prefix, rule.rewrite) + ctx.search,
        headers: upstreamRequestHeaders(ctx.req.headers, identity).concat(forwardedHeaders(ctx, address, publicPrefix)),
        body: upstreamBody(ctx, bodyBytesMax),
        headersTimeout: 0,
        signal,
      }),
    );
    if (answer !== undefined) answerWith(ctx, answer, { publicPrefix, innerPrefix, upstreamOrigin: origin });
  };

  /** Undefined when the client has left: then there is nobody to answer, and no fault of the upstream's to tell. */
  async function ask(
    ctx: Context,
    request: (signal: GiveUpSignal) => Promise<Dispatcher.ResponseData>,
  ): Promise<Dispatcher.ResponseData | undefined> {
    const startedAt = performance.now();
    try {
      return await underDeadline(ctx, timeoutMs, request);
    } catch (cause) {
      if (hasLeft(ctx)) return undefined;
      throw cause instanceof Problem ? cause : upstreamProblem(cause);
    } finally {
      exchangeOf(ctx).upstreamMs = performance.now() - startedAt;
      closeUnlessReceived(ctx);
    }
  }
}

/** What a client is still sending when it is answered would be read as its next request. */
function closeUnlessReceived({ req, res }: Context): void {
  if (!req.complete && !res.headersSent) res.setHeader('Connection', 'close');
}

/** Koa ends these without a body; HEAD too. */
const bodiless = [204, 205, 304];

function answerWith(ctx: Context, answer: Dispatcher.ResponseData, from: PathRestoration): void {
  const { statusCode, headers, body } = answer;
  // Koa destroys what it cannot send, as when the client has left, and an undici body says so with an error.
  body.on('error', ignore);
  ctx.status = statusCode;
  copyResponseHeaders(ctx, headers, (value) => restoreLocation(value, from));
  if (ctx.method === 'HEAD' || bodiless.includes(statusCode)) {
    body.resume();
    return;
  }
  ctx.body = wholeBody(answer) ?? body;
  if (headers['content-type'] === undefined) ctx.remove('Content-Type');
}

/** A short body is there as soon as its headers are, and sending it as a stream would cost a third of the exchange. */
function wholeBody({ headers, body }: Dispatcher.ResponseData): Buffer | undefined {
  if (body.readableLength === 0 || String(body.readableLength) !== headers['content-length']) return undefined;
  const bytes: Buffer = body.read();
  body.resume();
  return bytes;
}

function ignore(): void {}
