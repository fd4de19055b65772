/** What routing reads of a mapping and of a request, and a record's pattern compiled. */
import type { IncomingHttpHeaders } from 'node:http';
import { compilePattern, type Mapping, type Pattern, type RegexRewrite } from '#config';

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

/** Decides which requests a route gets; a Mapping is a rule. */
export interface Rule extends Pick<Mapping, Read> {
  /** True: a route of the server itself, which loses against a mapping of the same prefix. @default false */
  readonly internal?: boolean | undefined;
  /** True: has the place of a broken mapping, and goes before a mapping that asks for as much. @default false */
  readonly isBlock?: boolean | undefined;
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
  /** As the client sees it, in lower case, without a port and without a dot at the end; `''`: unknown. */
  readonly host: string;
  /** Without the identity headers that the client sent. */
  readonly headers: IncomingHttpHeaders;
  /** The client's IP address, as trusted proxies report it. */
  readonly client: string;
}

/** Records are checked when they are read; a rule that is made in code throws TypeError here. */
export function compiled(text: string): Pattern {
  const result = compilePattern(text);
  if (!result.ok) throw new TypeError(`${result.fault.message}. ${result.fault.remedy}`);
  return result.pattern;
}
