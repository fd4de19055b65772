/** The dispatcher: each API version is an isolated app under its own prefix, which the app does not see. */
import type Koa from 'koa';
import type { Context, Middleware, Next } from 'koa';
import compose from 'koa-compose';
import mount from 'koa-mount';
import { isolate, problem, requestContext } from '#http';
import { redirectToSlash } from './resource-app.ts';

/** Apps by version, such as `{ v1, v2 }` for `/v1` and `/v2`. Any other prefix is `not-found`. */
export function createVersions(apps: Readonly<Record<string, Koa>>): Middleware {
  const versions = Object.entries(apps).map(([name, app]) => mountVersion(`/${name}`, app));
  return compose([settleBase, ...versions, unknownVersion]) as Middleware;
}

/** Where the host mounted us can be told from the path only before a mount of ours takes its part off. */
function settleBase(ctx: Context, next: Next): Promise<void> {
  requestContext(ctx);
  return next();
}

function mountVersion(prefix: string, app: Koa): Middleware {
  const run = isolate(app);
  const mounted = mount(prefix, async (ctx: Context) => {
    const exchange = requestContext(ctx);
    const { basePath } = exchange;
    exchange.basePath = basePath + prefix;
    try {
      await run(ctx);
    } finally {
      exchange.basePath = basePath;
    }
  });
  return (ctx, next) => (ctx.path === prefix ? redirectToSlash(ctx) : mounted(ctx, next));
}

function unknownVersion(): never {
  throw problem('not-found');
}
