/** What rules and labels read of a request, the dear parts no sooner than somebody asks for them. */
import type { IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import { type Addresses, pathOf, requestContext, searchOf } from '#http';
import type { RequestAttributes } from '#routing';

export type Facts = RequestAttributes;

/** In place of the request's own: that of the one which a preflight announces. */
export interface Announced {
  readonly method?: string | undefined;
  readonly path?: string | undefined;
}

/** Of the request as it came, its path in the plain form. Most gateways have no rule about hosts, so nobody pays for that. */
export function factsOf(ctx: Context, { method, path }: Announced = {}): Facts {
  const { req } = ctx;
  const url = req.url ?? '/';
  const facts = Object.create(askedFor) as Written<Facts & Source>;
  facts.method = method ?? req.method ?? 'GET';
  facts.path = path ?? pathOf(url);
  facts.search = searchOf(url);
  facts.headers = req.headers;
  facts.req = req;
  facts.addresses = requestContext(ctx).addresses;
  return facts;
}

type Written<T> = { -readonly [Name in keyof T]: T[Name] };

interface Source {
  readonly req: IncomingMessage;
  readonly addresses: Addresses;
}

/** A prototype: getters that are written into each object cost most of a microsecond, asked for or not. */
const askedFor: Pick<Facts, 'host' | 'client'> & ThisType<Source> = Object.freeze({
  get host() {
    return this.addresses.host(this.req);
  },
  get client() {
    return this.addresses.client(this.req);
  },
});
