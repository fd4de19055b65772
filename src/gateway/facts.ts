/** What rules and labels read of a request, worked out once and no sooner than it is asked for. */
import type { Context } from 'koa';
import { exchangeOf, pathOf, searchOf } from '#http';
import type { RequestFacts } from '#routing';

export interface Facts extends RequestFacts {
  /** The client's IP address, as trusted proxies tell it. */
  readonly client: string;
}

/** Of the request as it came, its path in the plain form. Most gateways have no rule about hosts, so nobody pays for that. */
export function factsOf(ctx: Context): Facts {
  const { req } = ctx;
  const url = req.url ?? '/';
  const { addresses } = exchangeOf(ctx);
  let host: string | undefined;
  return {
    method: req.method ?? 'GET',
    path: pathOf(url),
    search: searchOf(url),
    headers: req.headers,
    get host() {
      host ??= addresses.host(req);
      return host;
    },
    get client() {
      return addresses.client(req);
    },
  };
}
