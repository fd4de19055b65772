/** The admin port: metrics and probes for whatever watches the process, without credentials, and nothing that tells more. */
import type { Context, Middleware } from 'koa';
import type { InternalRoute } from '#gateway';
import {
  createAddresses,
  createProblemResponses,
  createRequestContext,
  createSafePath,
  type ProblemResponsesOptions,
  problem,
} from '#http';
import type { Settled } from './options.ts';

/** What is asked for here, and which of the server's own routes answers. */
const served: ReadonlyMap<string, string> = new Map([
  ...['metrics', 'check_alive', 'check_ready'].map((name) => [`/gateway/v0/${name}`, `/gateway/v0/${name}`] as const),
  // Where Prometheus looks when nobody tells it.
  ['/metrics', '/gateway/v0/metrics'],
]);

/** Without an access log: a line every few seconds that says that somebody is watching would say nothing else. */
export function createAdmin(
  { settings }: Pick<Settled, 'settings'>,
  responses: ProblemResponsesOptions,
  routes: readonly InternalRoute[],
): readonly Middleware[] {
  async function serveAdmin(ctx: Context): Promise<void> {
    const path = served.get(ctx.path);
    const route = routes.find(({ prefix }) => prefix === path);
    if (path === undefined || route === undefined) throw problem('not-found');
    const { url } = ctx;
    ctx.url = path + ctx.search;
    try {
      await route.run(ctx);
    } finally {
      ctx.url = url;
    }
  }

  // The pages about problems are not served here.
  const problems = createProblemResponses({ ...responses, problemPagesPath: undefined });
  return [createRequestContext(createAddresses(settings)), problems, createSafePath(settings), serveAdmin];
}
