/** How long another service is waited for: until the deadline, and no longer than the client waits itself. */
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

/**
 * Aborts the signal with `GivenUp` after `timeoutMs`, or when the client leaves. undici's own timers are coarse (200 ms
 * fired after 682), and `AbortSignal.timeout` cannot be taken back, so the timer is ours.
 */
export async function underDeadline<T>(
  ctx: Context,
  timeoutMs: number,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const giveUp = (code: GivenUp['code'], message: string) => controller.abort(new GivenUp(code, message));
  const onClose = () => giveUp('ECONNRESET', 'the client left');
  if (hasLeft(ctx)) onClose();
  const timer = setTimeout(() => giveUp('ETIMEDOUT', `no answer within ${timeoutMs} ms`), timeoutMs);
  ctx.res.once('close', onClose);
  try {
    controller.signal.throwIfAborted();
    return await run(controller.signal);
  } finally {
    clearTimeout(timer);
    ctx.res.removeListener('close', onClose);
  }
}

/** True when nobody is there any more to read an answer; the access log says 499 then. */
export function hasLeft({ res }: Context): boolean {
  return res.destroyed;
}
