/** A mapping's CORS headers and its answers to preflights (the CORS protocol of the Fetch standard). */
import type { Context } from 'koa';
import type { CorsRule } from '#config';

export interface Cors {
  /** Sets the headers on every outcome, so that scripts can read refusals and errors too; they replace those of the service. */
  readonly around: (ctx: Context, run: () => Promise<unknown>) => Promise<void>;
  /** Answers the preflight, with or without permission. */
  readonly answerPreflight: (ctx: Context) => void;
  /** The headers of a response to this origin; of a preflight those that permit the request. Pure. */
  readonly headersFor: (origin: string | undefined, preflight: boolean) => CorsHeaders;
}

type CorsHeaders = Readonly<Record<string, string>>;

export function createCors(rule: CorsRule): Cors {
  const origins = new Set(rule.origins);
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
    if (origins.has('*')) return { 'Access-Control-Allow-Origin': '*', ...headers };
    return origins.has(origin) ? { 'Access-Control-Allow-Origin': origin, ...headers } : none;
  }

  function write(ctx: Context, preflight: boolean): void {
    const { res } = ctx;
    const headers = headersFor(ctx.req.headers.origin, preflight);
    for (const name of res.getHeaderNames()) if (isCors(name)) res.removeHeader(name);
    for (const name in headers) res.setHeader(name, headers[name] ?? '');
    // A shared cache must not hand one origin's permission, or the lack of it, to another.
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

/** With `*`, scripts of any origin may read responses, but send no credentials. */
function commonHeaders({ credentials, origins }: CorsRule): CorsHeaders {
  return credentials && !origins.includes('*') ? { 'Access-Control-Allow-Credentials': 'true' } : none;
}

function present(name: string, value: string): CorsHeaders {
  return value === '' ? none : { [name]: value };
}

function isCors(name: string): boolean {
  return name.toLowerCase().startsWith('access-control-');
}

/** @koa/cors, in a service of this process, adds its headers to errors that pass through it. */
function removeCors(thrown: unknown): void {
  if (!(thrown instanceof Error) || !('headers' in thrown)) return;
  const others = Object.entries(Object(thrown.headers)).filter(([name]) => !isCors(name));
  thrown.headers = Object.fromEntries(others);
}
