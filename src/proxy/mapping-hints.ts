/** Warns once per mapping of requests that fail because its record lacks a field. */
import type { Context } from 'koa';
import type { Mapping } from '#config';
import type { Logger } from '#foundation';
import { grpcKindOf, requestContext, requestLogFields } from '#http';
import { keepsPath, type PathRule } from '#routing';

export interface MappingHints {
  /** Call it for a request whose connection stays as it is. */
  readonly onPlainRequest: (ctx: Context) => void;
  /** Call it when the headers of the response are on `ctx.res`. `sentPath`: the path and query that the service got. */
  readonly onResponse: (ctx: Context, sentPath: string) => void;
}

type HintedMapping = Pick<Mapping, 'name' | 'grpc' | 'allowUpgrade'> & PathRule;

export function createMappingHints(hinted: HintedMapping, logger: Logger): MappingHints {
  const { name: mapping, grpc, allowUpgrade } = hinted;
  const isRewriting = !keepsPath(hinted);
  const warnOnce = () => {
    let hasWarned = false;
    return (ctx: Context, message: string) => {
      if (!hasWarned) logger.warn({ ...requestLogFields(ctx), mapping }, message);
      hasWarned = true;
    };
  };
  const warnOfUpgrade = warnOnce();
  const warnOfRedirect = warnOnce();
  const warnOfCall = warnOnce();
  return Object.freeze({
    onPlainRequest(ctx: Context) {
      if (!grpc && grpcKindOf(ctx.req) !== undefined)
        warnOfCall(ctx, 'a client makes gRPC calls, which the mapping forwards as HTTP/1.1: set grpc: true');
      const offered = protocolOf(ctx);
      if (offered === undefined || allowUpgrade.includes(offered)) return;
      requestContext(ctx).refusedUpgrade = offered;
      warnOfUpgrade(
        ctx,
        `a client asked to switch to ${offered}, which the mapping does not allow: set allow_upgrade: [${offered}]`,
      );
    },
    onResponse(ctx: Context, sentPath: string) {
      if (isRewriting && sentPath !== ctx.req.url && isSelfRedirect(ctx))
        warnOfRedirect(
          ctx,
          'the service redirects a client to the URL that it has asked for. If it expects the whole path, set rewrite: ""',
        );
    },
  });
}

/**
 * Returns the first protocol that the client offers, in lower case. Ignores other versions of HTTP, which a mapping
 * cannot allow, and text that is not a protocol.
 */
function protocolOf(ctx: Context): string | undefined {
  const { upgrade } = ctx.req.headers;
  if (upgrade === undefined || !requestContext(ctx).nominated.has('upgrade')) return undefined;
  const [first = ''] = upgrade.toLowerCase().split(',', 1);
  const protocol = first.trim();
  return /^[a-z][\w.+-]{0,30}(?:\/[\w.]{1,10})?$/.test(protocol) && !/^(?:h2c?|http|tls)(?:\/|$)/.test(protocol)
    ? protocol
    : undefined;
}

const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** True for a redirect that a client would follow endlessly. After another method, the same URL is meant for a GET. */
function isSelfRedirect(ctx: Context): boolean {
  const { req, res } = ctx;
  if (!redirects.has(res.statusCode) || (req.method !== 'GET' && req.method !== 'HEAD')) return false;
  const { addresses, basePath } = requestContext(ctx);
  const location = res.getHeader('Location');
  const path = basePath + req.url;
  return location === path || location === addresses.origin(req) + path;
}
