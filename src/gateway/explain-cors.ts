/** What a script of another origin may do with a request, as `explain` tells it. */
import type { Context } from 'koa';
import type { CorsPart, HeaderPart } from './explanation.ts';
import type { ReadyRoute } from './route.ts';

export function isPreflight({ method, req }: Context): boolean {
  return method === 'OPTIONS' && req.headers['access-control-request-method'] !== undefined;
}

export function mappingCors({ req }: Context, { cors, mapping }: ReadyRoute, preflight: boolean): CorsPart | undefined {
  if (cors === undefined) return undefined;
  const { origin } = req.headers;
  const headers = headersOf(cors.headersFor(origin, preflight));
  return { rule: 'mapping', origins: mapping.cors?.origins ?? [], origin, allowed: headers.length > 0, headers };
}

/** `allowed`: the origin that the setting permits; `''`: none. */
export function siteCors({ req }: Context, allowed: string): CorsPart | undefined {
  if (allowed === '') return undefined;
  const headers = headersOf({ 'Access-Control-Allow-Origin': allowed });
  return { rule: 'CORS_ORIGINS', origins: [allowed], origin: req.headers.origin, allowed: true, headers };
}

function headersOf(headers: Readonly<Record<string, string>>): readonly HeaderPart[] {
  return Object.entries(headers).map(([name, value]) => ({ name, value }));
}
