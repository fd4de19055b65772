/** One copy on its way: what is answered is dropped, and after its time it is given up. */
import type { Dispatcher } from 'undici';
import type { Attempt } from './cluster.ts';
import { CallAborted } from './failures.ts';
import type { Timer } from './timer.ts';

export interface ShadowExchangeOptions {
  /** Until the whole answer, in milliseconds; 0: without end. */
  readonly timeoutMs: number;
  readonly timer: Timer;
  /** Told once why there was no answer. */
  readonly onFailure: (cause: unknown) => void;
}

/** Settles and releases the attempt. */
export function sendCopy(
  attempt: Attempt,
  request: Dispatcher.DispatchOptions,
  { timeoutMs, timer, onFailure }: ShadowExchangeOptions,
): void {
  let controller: Dispatcher.DispatchController | undefined;
  let isOver = false;
  const cancel = timeoutMs === 0 ? () => {} : timer(giveUp, timeoutMs);

  function end(): void {
    isOver = true;
    cancel();
    attempt.release();
  }

  function fail(cause: unknown): void {
    if (isOver) return;
    attempt.settle({ kind: 'failed', cause });
    end();
    onFailure(cause);
  }

  function giveUp(): void {
    const reason = new CallAborted('ETIMEDOUT', `no whole answer within ${timeoutMs} ms`);
    fail(reason);
    controller?.abort(reason);
  }

  attempt.dispatch(request, {
    onRequestStart(started) {
      controller = started;
      if (isOver) started.abort(new CallAborted('ETIMEDOUT', 'given up before it began'));
    },
    onResponseStart(_controller, status) {
      if (status >= 200) attempt.settle({ kind: 'answered', status });
    },
    onResponseData() {},
    onResponseEnd: end,
    onResponseError: (_controller, cause) => fail(cause),
  });
}
