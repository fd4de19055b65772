/** Preflights of browsers: answered for the mapping that the request they announce would meet. */
import type { Context } from 'koa';
import { pathOf, requestContext, sanitisePath } from '#http';
import type { Table } from '#routing';
import { factsOf } from './facts.ts';
import type { ReadyRoute } from './route.ts';

export interface Preflights {
  /** The route, when this is a preflight and the route has a CORS rule. Also for a path that nobody has looked at yet. */
  readonly routeOf: (ctx: Context) => ReadyRoute | undefined;
  /** For such a route. */
  readonly answer: (ctx: Context, route: ReadyRoute) => void;
}

/** A preflight carries none of the headers that a mapping may ask for: behind such a condition it meets another mapping. */
export function createPreflights({ match, routes }: Table<ReadyRoute>): Preflights {
  const areAny = routes.some(({ cors }) => cors !== undefined);

  function routeOf(ctx: Context): ReadyRoute | undefined {
    if (!areAny || ctx.method !== 'OPTIONS') return undefined;
    const { origin, 'access-control-request-method': method } = ctx.req.headers;
    const path = sanitisePath(pathOf(ctx.url));
    if (origin === undefined || method === undefined || path === undefined) return undefined;
    const route = match(factsOf(ctx, { path, method }))?.route;
    return route?.cors && route;
  }

  return Object.freeze({
    routeOf,
    answer(ctx: Context, { name, cors }: ReadyRoute) {
      requestContext(ctx).mapping = name;
      cors?.answerPreflight(ctx);
    },
  });
}
