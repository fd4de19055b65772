/** To a service in this process: its middleware runs on the same context, with the path it expects. */
import type { Context } from 'koa';
import { pathOf, problem, requestContext, searchOf } from '#http';
import { createRewrite, type PathRule, rewritePrefixes } from '#routing';

export type Forward = (ctx: Context) => Promise<void>;

/** `run` must be isolated: what it throws is rendered further out, what it leaves unanswered is its own 404. */
export function createLocalForward(rule: PathRule, run: Forward): Forward {
  if (rule.rewrite === '' && rule.regexRewrite === undefined) return run;
  const rewrite = createRewrite(rule);
  const { matchedPrefix } = rewritePrefixes(rule);
  return async function forwardLocal(ctx) {
    const { req } = ctx;
    const exchange = requestContext(ctx);
    const { basePath } = exchange;
    // Koa's own `path` and `search` would read the whole URL again, and once more after the change.
    const { url = '/' } = req;
    const path = pathOf(url);
    const inner = rewrite(path);
    if (inner === undefined)
      throw problem('bad-path', { detail: 'The path cannot be read in one way only once it is rewritten.' });
    // Where case makes no difference, links keep the client's.
    exchange.basePath = basePath + path.slice(0, matchedPrefix.length);
    req.url = inner + searchOf(url);
    try {
      await run(ctx);
    } finally {
      req.url = url;
      exchange.basePath = basePath;
    }
  };
}
