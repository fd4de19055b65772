/** A request to a service across HTTP, but for its body: worked out from the client's, so that it can be shown as well as sent. */
import type { IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import type { Mapping } from '#config';
import { pathOf, problem, searchOf, type Trace } from '#http';
import { createRewrite, type PathRule, rewritePrefixes } from '#routing';
import { createHeaderRules } from './header-rules.ts';
import {
  forwardedHeaders,
  type IdentityNames,
  publicAddress,
  upstreamRequestHeaders,
  viaOf,
} from './upstream-headers.ts';

export interface UpstreamTarget {
  readonly mapping: Pick<Mapping, 'hostRewrite' | 'requestHeaders'> & PathRule;
  /** Put before every path: `''`, or `/base`. */
  readonly path: string;
  readonly identity: IdentityNames;
}

export interface RequestHead {
  /** With its query. */
  readonly path: string;
  /** Names in lower case and values in turn. Without a `host` it is that of the address. */
  readonly headers: string[];
  /** What the path lost on its way to the service, as the client sees it. */
  readonly publicPrefix: string;
}

/** `trace`: told to the service, by default the request's own. Throws `bad-path` and `loop-detected`. */
export type HeadOfUpstreamRequest = (ctx: Context, trace?: Trace) => RequestHead;

/** Its functions ask nobody and change nothing. */
export function createRequestHead({ mapping, path: basePath, identity }: UpstreamTarget): HeadOfUpstreamRequest {
  const rewrite = createRewrite(mapping);
  const { matchedPrefix } = rewritePrefixes(mapping);
  const { editList } = createHeaderRules(mapping.requestHeaders);

  function pathFor({ url = '/' }: IncomingMessage): string {
    const path = rewrite(pathOf(url));
    if (path === undefined) throw problem('bad-path');
    const search = searchOf(url);
    return basePath + path + (search === '?' ? '' : search);
  }

  return function upstreamHead(ctx, trace) {
    const address = publicAddress(ctx);
    const publicPrefix = address.path + matchedPrefix;
    const headers = upstreamRequestHeaders(ctx.req.headers, identity);
    headers.push(...forwardedHeaders(ctx, address, publicPrefix, trace), 'via', viaOf(ctx.req));
    if (mapping.hostRewrite !== undefined) headers.push('host', mapping.hostRewrite);
    return { path: pathFor(ctx.req), headers: editList(headers, ctx), publicPrefix };
  };
}
