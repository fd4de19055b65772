/** The dispatcher: each API version is an isolated app under its own prefix, which the app does not see. */
import type Koa from 'koa';
import type { Context, Middleware, Next } from 'koa';
import compose from 'koa-compose';
import mount from 'koa-mount';
import { isolate, problem, requestContext } from '#http';
import { redirectToSlash } from './app.ts';

/** Apps by version, such as `{ v1, v2 }` for `/v1` and `/v2`. Any other prefix is `not-found`. */
export function createVersions(apps: Readonly<Record<string, Koa>>): Middleware {
  const versions = Object.entries(apps).map(([name, app]) => mountVersion(`/${name}`, app));
  return compose([openContext, ...versions, unknownVersion]) as Middleware;
}

/** The context finds out the host's mount path, which works only before we mount a version ourselves. */
function openContext(ctx: Context, next: Next): Promise<void> {
  requestContext(ctx);
  return next();
}

function mountVersion(prefix: string, app: Koa): Middleware {
  const run = isolate(app);
  const mounted = mount(prefix, async (ctx: Context) => {
    const context = requestContext(ctx);
    const { basePath } = context;
    context.basePath = basePath + prefix;
    try {
      await run(ctx);
    } finally {
      context.basePath = basePath;
    }
  });
  return (ctx, next) => (ctx.path === prefix ? redirectToSlash(ctx) : mounted(ctx, next));
}

function unknownVersion(): never {
  throw problem('not-found');
}
