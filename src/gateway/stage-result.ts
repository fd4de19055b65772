/** What every stage returns, and the loop that runs stages until one ends the request. */
import type { Context } from 'koa';
import { clientIsGone } from '#proxy';

/**
 * Only `continue` lets a request reach the next stage. Otherwise its response is set, or its client has disconnected. A
 * promise only when the stage has to wait, for example for another process.
 */
export type StageResult = Step | Promise<Step> | Promise<void>;

export type Step = 'continue' | 'done';

interface Runnable<Routed> {
  readonly run: (routed: Routed) => StageResult;
}

/**
 * Runs the stages in order. If the client disconnects while one waits, the remaining ones are skipped: no event would
 * release what they acquire.
 */
export async function runInOrder<Routed extends { readonly request: { readonly ctx: Context } }>(
  stages: readonly Runnable<Routed>[],
  routed: Routed,
): Promise<void> {
  for (const stage of stages) {
    const result = stage.run(routed);
    // Awaits only promises, because each await would delay the request by a microtask.
    if (result instanceof Promise) {
      if ((await result) !== 'continue' || clientIsGone(routed.request.ctx)) return;
    } else if (result !== 'continue') return;
  }
}
