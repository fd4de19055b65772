/** The request that is asked about as the gateway reads it, as `explain` tells it. */
import type { Context } from 'koa';
import { exchangeOf, pathOf, type SafePathOptions, sanitisePath, searchOf } from '#http';
import type { Question, RequestPart } from './explanation.ts';

/** `names`: of the headers that only an auth service may set. */
export function requestPart(
  ctx: Context,
  { method, url, user }: Question,
  names: readonly string[],
  { strictPaths }: Required<SafePathOptions>,
): RequestPart {
  const { req } = ctx;
  const { addresses } = exchangeOf(ctx);
  return {
    method,
    url,
    path: sanitisePath(pathOf(ctx.url), strictPaths),
    query: searchOf(ctx.url),
    scheme: addresses.scheme(req),
    host: addresses.host(req),
    client: addresses.client(req),
    user,
    identity_headers: names,
    stripped: names.filter((name) => req.headers[name] !== undefined),
  };
}
