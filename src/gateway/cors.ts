/** CORS by @koa/cors, for the whole server and for a mapping (Fetch standard, section "CORS protocol"). */
import cors from '@koa/cors';
import type { Context, Middleware } from 'koa';
import { type AllowedOrigin, type CorsRule, createAllowedOrigin, type Mapping } from '#config';
import { grpcWebCallOf } from '#http';

/** What clients of gRPC-Web send, besides the metadata of their users. */
const sentByWeb = ['Content-Type', 'Grpc-Timeout', 'X-Grpc-Web', 'X-User-Agent'];
/** What they read in a response of headers alone. */
const readByWeb = ['Grpc-Status', 'Grpc-Message', 'Grpc-Status-Details-Bin'];

/** Sets headers, which services may replace, and responds to preflights. Permits the methods of REST and any headers. */
export function createSiteCors(origins: readonly string[], exposedHeaders: readonly string[]): Middleware {
  const allowedOrigin = createAllowedOrigin(origins);
  const exposing = (names: readonly string[]) => applyCors(allowedOrigin, { exposeHeaders: names.join() });
  const plain = exposing(exposedHeaders);
  const web = exposing([...exposedHeaders, ...readByWeb]);
  return function siteCors(ctx, next) {
    return (grpcWebCallOf(ctx.req) === undefined ? plain : web)(ctx, next);
  };
}

/** The CORS of a mapping. */
export interface Cors {
  /**
   * Sets the headers on every response, so that scripts can also read errors. Replaces the CORS headers of the service.
   */
  readonly around: (ctx: Context, run: () => Promise<unknown>) => Promise<void>;
  /** Responds to a preflight, whether or not the rule permits the request. */
  readonly answerPreflight: (ctx: Context) => void;
  /** Returns the headers of the response to this request, or to this preflight, after setting them. */
  readonly preview: (ctx: Context, isPreflight: boolean) => CorsHeaders;
}

type CorsHeaders = Readonly<Record<string, string>>;

/**
 * With `grpc`, clients of gRPC-Web may call the mapping, and need headers that its rule need not list. In a route of the
 * Gateway API, a star stands for whatever the client asks for, with credentials too, and a preflight lists the headers that
 * scripts may read.
 */
export function createCors(given: CorsRule, { grpc, gatewayRoute }: Pick<Mapping, 'grpc' | 'gatewayRoute'>): Cors {
  const rule = grpc ? withWebHeaders(given) : given;
  const isRoute = gatewayRoute !== undefined;
  const allowedOrigin = createAllowedOrigin(rule.origins);
  const apply = applyCors((origin) => (origin === '' ? '' : allowedOrigin(origin)), optionsOf(rule, isRoute));

  /** Replaces all CORS headers of the response. */
  function write(ctx: Context, isPreflight: boolean): void {
    for (const name of ctx.res.getHeaderNames()) if (isCors(name)) ctx.res.removeHeader(name);
    void apply(isPreflight ? ctx : withoutPreflight(ctx), noNext);
    // Without a list, @koa/cors permits every header that the preflight names.
    if (rule.headers.length === 0) ctx.remove('Access-Control-Allow-Headers');
    if (isRoute && isPreflight && ctx.res.hasHeader('Access-Control-Allow-Origin')) writeRoutePreflight(ctx, rule);
  }

  return Object.freeze({
    async around(ctx: Context, run: () => Promise<unknown>) {
      write(ctx, false);
      try {
        await run();
      } catch (thrown) {
        removeCors(thrown);
        throw thrown;
      } finally {
        if (!ctx.headerSent) write(ctx, false);
      }
    },
    answerPreflight(ctx: Context) {
      write(ctx, true);
      ctx.status = 204;
    },
    preview(ctx: Context, isPreflight: boolean) {
      write(ctx, isPreflight);
      const names = ctx.res.getHeaderNames().filter(isCors);
      return Object.fromEntries(names.map((name) => [capitalised(name), String(ctx.res.getHeader(name))]));
    },
  });
}

/**
 * Applies @koa/cors to the origins for which `allowedOrigin` returns one. Sets the headers before it returns: with an
 * origin that is a string, @koa/cors waits for nothing before.
 */
function applyCors(allowedOrigin: AllowedOrigin, options: cors.Options): Middleware {
  return function corsOfOrigin(ctx, next) {
    const origin = allowedOrigin(ctx.get('Origin'));
    if (origin !== '') return cors({ ...options, origin })(ctx, next);
    // A shared cache must not serve the response for one origin to another.
    ctx.vary('Origin');
    return next();
  };
}

function writeRoutePreflight(ctx: Context, { methods, exposedHeaders, credentials }: CorsRule): void {
  if (exposedHeaders.length > 0) ctx.set('Access-Control-Expose-Headers', exposedHeaders.join(', '));
  if (credentials && methods.includes('*'))
    ctx.set('Access-Control-Allow-Methods', ctx.get('Access-Control-Request-Method'));
}

function withWebHeaders(rule: CorsRule): CorsRule {
  return {
    ...rule,
    headers: union(rule.headers, sentByWeb),
    exposedHeaders: union(rule.exposedHeaders, readByWeb),
  };
}

/** Header names are equal in any case. */
function union(names: readonly string[], more: readonly string[]): string[] {
  const present = names.map((name) => name.toLowerCase());
  return [...names, ...more.filter((name) => !present.includes(name.toLowerCase()))];
}

function optionsOf(rule: CorsRule, isRoute: boolean): cors.Options {
  const { origins, methods, headers, exposedHeaders, credentials, maxAgeSeconds } = rule;
  // Browsers take a star literally with credentials. Without a list, @koa/cors permits the headers of the preflight.
  const isAsked = isRoute && credentials && headers.includes('*');
  return {
    allowMethods: methods.join(', '),
    allowHeaders: isAsked ? '' : headers.join(', '),
    exposeHeaders: exposedHeaders.join(', '),
    // With `*`, scripts of any origin may read responses, but must not send credentials. @koa/cors names the origin if they may.
    credentials: credentials && (isRoute || !origins.includes('*')),
    // As text, because @koa/cors omits the number 0.
    maxAge: String(maxAgeSeconds ?? ''),
  };
}

/** @koa/cors would answer a preflight for another mapping, and set no headers on any other OPTIONS. */
function withoutPreflight(ctx: Context): Context {
  return ctx.method === 'OPTIONS' ? Object.create(ctx, { method: { value: 'GET' } }) : ctx;
}

/** Stands in for the next middleware. */
async function noNext(): Promise<void> {}

function isCors(name: string): boolean {
  return name.toLowerCase().startsWith('access-control-');
}

/** Returns the usual spelling of a header name, which Node reports in lower case. */
function capitalised(name: string): string {
  return name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase());
}

/** When a service in this process uses @koa/cors, that adds its own headers to errors passing through it. */
function removeCors(thrown: unknown): void {
  if (!(thrown instanceof Error) || !('headers' in thrown)) return;
  const others = Object.entries(Object(thrown.headers)).filter(([name]) => !isCors(name));
  thrown.headers = Object.fromEntries(others);
}
