/** How long another service is waited for: until the deadline, and no longer than the client waits itself. */
import { EventEmitter } from 'node:events';
import type { Context } from 'koa';

/** Why a request to another service was given up; `code` as the operating system would put it. */
export class GivenUp extends Error {
  override readonly name = 'GivenUp';
  readonly code: 'ETIMEDOUT' | 'ECONNRESET';

  constructor(code: 'ETIMEDOUT' | 'ECONNRESET', message: string) {
    super(message);
    this.code = code;
  }
}

/** What undici asks of a signal; an AbortSignal does the same at ten times the cost. Emits `abort` once at most. */
export interface GiveUpSignal extends EventEmitter {
  readonly aborted: boolean;
  readonly reason: GivenUp | undefined;
}

/**
 * Aborts the signal with `GivenUp` after `timeoutMs`, or when the client leaves. undici's own timers are coarse (200 ms
 * fired after 682), and `AbortSignal.timeout` cannot be taken back, so the timer is ours.
 */
export async function underDeadline<T>(
  ctx: Context,
  timeoutMs: number,
  run: (signal: GiveUpSignal) => Promise<T>,
): Promise<T> {
  if (hasLeft(ctx)) throw clientLeft();
  const signal = Object.assign(new EventEmitter(), { aborted: false, reason: undefined as GivenUp | undefined });
  const giveUp = (reason: GivenUp) => {
    if (signal.aborted) return;
    Object.assign(signal, { aborted: true, reason });
    signal.emit('abort');
  };
  const onClose = () => giveUp(clientLeft());
  const timer = setTimeout(() => giveUp(new GivenUp('ETIMEDOUT', `no answer within ${timeoutMs} ms`)), timeoutMs);
  ctx.res.once('close', onClose);
  try {
    return await run(signal);
  } finally {
    clearTimeout(timer);
    ctx.res.removeListener('close', onClose);
  }
}

export function tooSlow(message: string): GivenUp {
  return new GivenUp('ETIMEDOUT', message);
}

export function clientLeft(): GivenUp {
  return new GivenUp('ECONNRESET', 'the client left');
}

/** True when nobody is there any more to read an answer; the access log says 499 then. */
export function hasLeft({ res }: Context): boolean {
  return res.destroyed;
}
