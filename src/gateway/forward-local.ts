/** To a service in this process: its middleware runs on the same context, with the path it expects. */
import type { Context } from 'koa';
import { exchangeOf, pathOf, searchOf } from '#http';
import { rewritePath } from './rewrite.ts';

export type Forward = (ctx: Context) => Promise<void>;

export interface PathRule {
  readonly prefix: string;
  readonly rewrite: string;
}

/** `run` must be isolated: what it throws is rendered further out, what it leaves unanswered is its own 404. */
export function createLocalForward({ prefix, rewrite }: PathRule, run: Forward): Forward {
  if (rewrite === '') return run;
  const taken = prefix === '/' ? '' : prefix;
  return async function forwardLocal(ctx) {
    const exchange = exchangeOf(ctx);
    const { basePath } = exchange;
    const { url } = ctx;
    exchange.basePath = basePath + taken;
    // Koa's own `path` and `search` would read the whole URL again, and once more after the change.
    ctx.url = rewritePath(pathOf(url), prefix, rewrite) + searchOf(url);
    try {
      await run(ctx);
    } finally {
      ctx.url = url;
      exchange.basePath = basePath;
    }
  };
}
