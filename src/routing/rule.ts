/** What routing reads of a mapping, and what it reads of a request. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Mapping, RegexRewrite } from '#config';

type Read =
  | 'name'
  | 'prefix'
  | 'prefixMatch'
  | 'caseSensitive'
  | 'host'
  | 'method'
  | 'headers'
  | 'queryParameters'
  | 'precedence'
  | 'weight'
  | 'shadow';

/** What decides which requests a route gets; a Mapping is one. */
export interface Rule extends Pick<Mapping, Read> {
  /** True: a route that the server brings itself. It loses against a mapping of the same prefix. @default false */
  readonly internal?: boolean | undefined;
}

/** What a rewrite needs of a mapping. */
export interface PathRule {
  readonly prefix: string;
  /** @default 'segments' */
  readonly prefixMatch?: Mapping['prefixMatch'] | undefined;
  readonly rewrite: string;
  /** In place of `rewrite`. */
  readonly regexRewrite?: RegexRewrite | undefined;
}

/** One request as rules see it. `path` is in its plain form, `search` is `''` or starts with `?`. */
export interface RequestAttributes {
  readonly method: string;
  readonly path: string;
  readonly search: string;
  /** As the client sees it; case, a port and a dot at the end make no difference. */
  readonly host: string;
  /** Without the identity headers that the client sent. */
  readonly headers: IncomingHttpHeaders;
  /** The client's IP address, as trusted proxies report it. */
  readonly client: string;
}
