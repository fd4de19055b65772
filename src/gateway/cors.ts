/** Sets a mapping's CORS headers and responds to preflights (Fetch standard, section "CORS protocol"). */
import type { Context } from 'koa';
import { type CorsRule, createAllowedOrigin } from '#config';

export interface Cors {
  /**
   * Sets the headers on every response, so that scripts can also read errors. Replaces the CORS headers of the service.
   */
  readonly around: (ctx: Context, run: () => Promise<unknown>) => Promise<void>;
  /** Responds to a preflight, whether or not the rule permits the request. */
  readonly answerPreflight: (ctx: Context) => void;
  /** Returns the headers of a response to this origin, or of a response to its preflight. Pure. */
  readonly headersFor: (origin: string | undefined, preflight: boolean) => CorsHeaders;
}

type CorsHeaders = Readonly<Record<string, string>>;

export function createCors(rule: CorsRule): Cors {
  const allowedOrigin = createAllowedOrigin(rule.origins);
  const common = commonHeaders(rule);
  const ordinary = { ...common, ...present('Access-Control-Expose-Headers', rule.exposedHeaders.join(', ')) };
  const permitted = {
    ...common,
    ...present('Access-Control-Allow-Methods', rule.methods.join(', ')),
    ...present('Access-Control-Allow-Headers', rule.headers.join(', ')),
    ...present('Access-Control-Max-Age', String(rule.maxAgeSeconds ?? '')),
  };

  function headersFor(origin: string | undefined, preflight: boolean): CorsHeaders {
    if (origin === undefined) return none;
    const headers = preflight ? permitted : ordinary;
    const allowed = allowedOrigin(origin);
    return allowed === '' ? none : { 'Access-Control-Allow-Origin': allowed, ...headers };
  }

  function write(ctx: Context, preflight: boolean): void {
    const { res } = ctx;
    const headers = headersFor(ctx.req.headers.origin, preflight);
    for (const name of res.getHeaderNames()) if (isCors(name)) res.removeHeader(name);
    for (const name in headers) res.setHeader(name, headers[name] ?? '');
    // A shared cache must not serve the response for one origin to another.
    ctx.vary('Origin');
  }

  return Object.freeze({
    headersFor,
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
  });
}

const none: CorsHeaders = Object.freeze({});

/** With `*`, scripts of any origin may read responses, but must not send credentials. */
function commonHeaders({ credentials, origins }: CorsRule): CorsHeaders {
  return credentials && !origins.includes('*') ? { 'Access-Control-Allow-Credentials': 'true' } : none;
}

function present(name: string, value: string): CorsHeaders {
  return value === '' ? none : { [name]: value };
}

function isCors(name: string): boolean {
  return name.toLowerCase().startsWith('access-control-');
}

/** When a service in this process uses @koa/cors, that adds its own headers to errors passing through it. */
function removeCors(thrown: unknown): void {
  if (!(thrown instanceof Error) || !('headers' in thrown)) return;
  const others = Object.entries(Object(thrown.headers)).filter(([name]) => !isCors(name));
  thrown.headers = Object.fromEntries(others);
}
