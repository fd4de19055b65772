/** The version dispatcher: mounts each API version as an isolated app under a prefix. */
import type Koa from 'koa';
import type { Context, Middleware, Next } from 'koa';
import compose from 'koa-compose';
import mount from 'koa-mount';
import { isolate, problem, requestContext } from '#http';
import { redirectToSlash } from './app.ts';

/** Mounts apps such as `{ v1, v2 }` at `/v1` and `/v2`, which the apps do not see. Any other path is `not-found`. */
export function createVersions(apps: Readonly<Record<string, Koa>>): Middleware {
  const versions = Object.entries(apps).map(([name, app]) => mountVersion(`/${name}`, app));
  return compose([openContext, ...versions, unknownVersion]) as Middleware;
}

/** Creates the request context, which detects the host's mount path. That works only before a version is mounted. */
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
