/** One request's exchange with a service: attempts under one deadline, until one of them has an answer. */
import type { Context } from 'koa';
import type { Attempt } from './cluster.ts';
import { clientLeft, hasLeft, tooSlow } from './deadline.ts';
import { type AttemptListener, startAttempt } from './exchange-attempt.ts';
import type { Answer, Exchange, UpstreamRequest, Way } from './exchange-state.ts';
import { failureOf } from './failures.ts';
import { firstValue } from './raw-headers.ts';
import { uploadTooSlow } from './request-body.ts';
import { backOffMs, isIdempotent, retryAfterMs } from './retry.ts';

/**
 * Rejects with what the last attempt failed with, with `GivenUp` at the deadline or when the client leaves, or with the
 * Problem of the request's body. When the client leaves later, what is left of the answer is given up.
 */
export function runExchange(way: Way, ctx: Context, request: UpstreamRequest): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const exchange: Exchange = {
      way,
      request,
      startedAtMs: way.clock(),
      resolve,
      reject,
      tried: undefined,
      retries: 0,
      hasRaced: false,
      hasAbandoned: false,
      isSettled: false,
      abandon: undefined,
      releaseRetry: undefined,
      deadline: undefined,
      timer: undefined,
    };
    if (hasLeft(ctx)) fail(exchange, clientLeft());
    else begin(exchange, ctx);
  });
}

function begin(exchange: Exchange, { res }: Context): void {
  const { way, request } = exchange;
  res.once('close', () => giveUp(exchange, clientLeft));
  if (way.timeoutMs > 0) exchange.deadline = setTimeout(onDeadline, way.timeoutMs, exchange);
  request.upload?.watch({
    onEnd: () => void (exchange.isSettled || exchange.deadline?.refresh()),
    onIdle: (isClients) => giveUp(exchange, isClients ? uploadTooSlow : () => tooSlow('no progress with the body')),
  });
  attemptOnce(exchange);
}

function attemptOnce(exchange: Exchange): void {
  const { way, request, tried } = exchange;
  let attempt: Attempt;
  try {
    attempt = way.cluster.attempt(tried);
  } catch (cause) {
    fail(exchange, cause);
    return;
  }
  const { origin } = attempt;
  exchange.tried = tried === undefined ? [origin] : [...tried, origin];
  const { perTryTimeoutMs } = way.retries;
  if (perTryTimeoutMs !== undefined) exchange.timer = setTimeout(onTryTimeout, perTryTimeoutMs, exchange);
  const listener: AttemptListener = {
    onInterim: request.onInterim,
    onAnswer: (head, body, connection) => onAnswer(exchange, { head, body, origin, connection }),
    onFailure: (cause, isRace) => onFailure(exchange, cause, isRace),
  };
  exchange.abandon = startAttempt(attempt, request.options, listener, exchange.hasRaced);
}

function onAnswer(exchange: Exchange, answer: Answer): void {
  const { head, body } = answer;
  endAttempt(exchange);
  const isFinal = !exchange.way.retries.isRetriableStatus(head.status) || !isRepeatable(exchange);
  const pauseMs = isFinal ? 0 : (retryAfterMs(firstValue(head.rawHeaders, 'retry-after')) ?? 0);
  if (exchange.isSettled || (!isFinal && retryLater(exchange, pauseMs, head.status))) body.discard();
  else settle(exchange, exchange.resolve, answer);
}

function onFailure(exchange: Exchange, cause: unknown, isRace: boolean): void {
  endAttempt(exchange);
  if (exchange.isSettled) return;
  const { request, way } = exchange;
  if (isRace && !exchange.hasRaced && request.upload === undefined && isIdempotent(request.options.method)) {
    exchange.hasRaced = failureOf(cause).retry === 'reset';
    if (exchange.hasRaced) {
      attemptOnce(exchange);
      return;
    }
  }
  const isRetried = isRepeatable(exchange) && way.retries.isRetriableFailure(cause) && retryLater(exchange, 0, cause);
  if (!isRetried) fail(exchange, cause);
}

/** A body that has begun to flow is gone, and one whose attempt was only given up may still be taken by it. */
function isRepeatable({ way, request, hasAbandoned }: Exchange): boolean {
  if (way.retries.retriesMax === 0 || !isIdempotent(request.options.method)) return false;
  return request.upload === undefined || !(hasAbandoned || request.upload.hasBegun());
}

/** False when there may be no more retries, or the pause would not end before the deadline. */
function retryLater(exchange: Exchange, pauseMsMin: number, because: unknown): boolean {
  const { way, retries, startedAtMs } = exchange;
  if (retries >= way.retries.retriesMax) return false;
  const pauseMs = Math.max(pauseMsMin, backOffMs(retries + 1, way.random));
  if (way.timeoutMs > 0 && way.clock() - startedAtMs + pauseMs >= way.timeoutMs) return false;
  exchange.releaseRetry = way.cluster.takeRetry();
  if (exchange.releaseRetry === undefined) return false;
  exchange.retries += 1;
  exchange.timer = setTimeout(attemptOnce, pauseMs, exchange);
  way.onRetry(pauseMs, because);
  return true;
}

function onDeadline(exchange: Exchange): void {
  const { way, request } = exchange;
  // The clock starts anew when the request is whole; until then its idle time-out is what counts.
  if (request.upload?.awaitsClient() !== true) giveUp(exchange, () => tooSlow(`no answer within ${way.timeoutMs} ms`));
}

function onTryTimeout(exchange: Exchange): void {
  const reason = tooSlow(`no answer to one attempt within ${exchange.way.retries.perTryTimeoutMs} ms`);
  exchange.abandon?.(() => reason);
  exchange.hasAbandoned = true;
  onFailure(exchange, reason, false);
}

/** Of an exchange that is through already, nothing is left to give up, and nothing happens. */
function giveUp(exchange: Exchange, because: () => Error): void {
  exchange.abandon?.(because);
  if (!exchange.isSettled) fail(exchange, because());
}

function fail(exchange: Exchange, cause: unknown): void {
  settle(exchange, exchange.reject, cause);
  exchange.request.upload?.drop();
}

function settle<T>(exchange: Exchange, tell: (told: T) => void, told: T): void {
  exchange.isSettled = true;
  clearTimeout(exchange.deadline);
  clearTimeout(exchange.timer);
  exchange.releaseRetry?.();
  tell(told);
}

/** It has its answer or its failure; of an answer that is kept, the body may still be abandoned. */
function endAttempt(exchange: Exchange): void {
  clearTimeout(exchange.timer);
  exchange.releaseRetry?.();
  exchange.releaseRetry = undefined;
}
