/** The input of routing: the fields of a mapping and the attributes of a request that it reads. */
import type { IncomingHttpHeaders } from 'node:http';
import { compilePattern, type Mapping, type Pattern, type RegexRewrite } from '#config';

type RuleField =
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

/** Determines which requests a route receives. Every Mapping is a rule. */
export interface Rule extends Pick<Mapping, RuleField> {
  /** Marks a built-in route of the server, which loses to a mapping with the same prefix. @default false */
  readonly internal?: boolean | undefined;
  /** Marks the stand-in for a broken mapping, which wins over a mapping that is equally specific. @default false */
  readonly isBlock?: boolean | undefined;
}

/** The fields of a mapping that a rewrite reads. */
export interface PathRule {
  readonly prefix: string;
  /** @default 'segments' */
  readonly prefixMatch?: Mapping['prefixMatch'] | undefined;
  readonly rewrite: string;
  /** Takes precedence over `rewrite`. */
  readonly regexRewrite?: RegexRewrite | undefined;
}

/** The attributes of a request that rules match. `path` is sanitised; `search` is `''` or starts with `?`. */
export interface RequestAttributes {
  readonly method: string;
  readonly path: string;
  readonly search: string;
  /** The public host in lower case, without port and trailing dot. `''` if unknown. */
  readonly host: string;
  /** The request headers, without any identity headers that the client sent. */
  readonly headers: IncomingHttpHeaders;
  /** The client's IP address, as trusted proxies report it. */
  readonly client: string;
}

/** Throws TypeError for a bad pattern of a rule that was created in code. Patterns in records are validated at load. */
export function compileOrThrow(text: string): Pattern {
  const result = compilePattern(text);
  if (!result.ok) throw new TypeError(`${result.fault.message}. ${result.fault.remedy}`);
  return result.pattern;
}
