/** The one place where a throw becomes a response. */
import type { Context, Middleware, Next } from 'koa';
import { exchangeOf } from './exchange.ts';
import type { Formatter } from './formatters.ts';
import type { Logger } from './logger.ts';
import { asProblem, errorBody, type Problem } from './problem.ts';
import { problems, problemTitle } from './problems.ts';
import { createRepresentations, type Representations } from './representations.ts';
import { logRequest } from './request-log.ts';

export interface ProblemResponsesOptions {
  readonly representations?: Representations;
  /** @default the `error` event of the app, which Koa prints */
  readonly logger?: Logger;
  /** Puts an error of another module in our terms; undefined leaves it to the default. */
  readonly translate?: (thrown: unknown) => Problem | undefined;
  /**
   * Where the pages about problems stand below the root of the server, with a slash at the end; each is named as its
   * problem. @default nowhere: errors have no `info_url`
   */
  readonly problemPages?: string | undefined;
}

/** Headers that speak of the representation which the error replaces. */
const staleHeaders = [
  'Content-Encoding',
  'Content-Disposition',
  'Content-Language',
  'Content-Length',
  'Content-Location',
  'Content-Range',
  'Accept-Ranges',
  'ETag',
  'Expires',
  'Last-Modified',
  'Link',
  'Location',
  'Transfer-Encoding',
];

/**
 * Renders what is thrown below it as the error body, in the representation that `Accept` asks for. A `Problem` is told
 * to the client; anything else reads 500 and is told to the log, with its cause.
 */
export function createProblemResponses(options: ProblemResponsesOptions = {}): Middleware {
  const { representations = createRepresentations(), logger, translate, problemPages } = options;
  return async function problemResponses(ctx: Context, next: Next) {
    try {
      await next();
    } catch (thrown) {
      const found = translate?.(thrown) ?? asProblem(thrown);
      if (!isDeparture(ctx, thrown)) report(ctx, found, thrown, logger);
      if (ctx.headerSent) ctx.res.destroy();
      else writeProblem(ctx, found, representations.chooseForError(ctx.req.headers.accept), problemPages);
    }
  };
}

/** Writes the error body and the headers that belong to it, in place of whatever was prepared. */
function writeProblem(ctx: Context, found: Problem, formatter: Formatter, pages: string | undefined): void {
  const body = errorBody(found, pages === undefined ? undefined : infoUrlOf(ctx, found, pages));
  for (const name of staleHeaders) ctx.remove(name);
  ctx.status = found.status;
  ctx.set({ 'Cache-Control': 'no-store', ...formatter.headers });
  for (const [name, value] of Object.entries(found.headers ?? {})) setHeader(ctx, name, value);
  ctx.vary('Accept');
  ctx.set('Content-Type', formatter.contentType);
  ctx.body = formatter.format(body, formatter.errorsOnly === true ? problemTitle(found.slug) : body.message);
  // Whoever meant to write to the socket himself has not begun to, or the headers would be out.
  ctx.respond = true;
}

/**
 * Undefined where the status is not that of the table: somebody else chose it, such as an auth service that would rather
 * say 404, and the page would tell another story.
 */
function infoUrlOf(ctx: Context, { slug, status }: Problem, pages: string): string | undefined {
  if (status !== problems[slug].status) return undefined;
  const { addresses, rootPath } = exchangeOf(ctx);
  return addresses.origin(ctx.req) + rootPath + pages + slug;
}

/** `Vary` is added to, since @koa/cors hands its own along with the error. */
function setHeader(ctx: Context, name: string, value: string | readonly string[]): void {
  const copy = Array.isArray(value) ? [...value] : String(value);
  if (name.toLowerCase() === 'vary') ctx.vary(copy);
  else ctx.set(name, copy);
}

function report(ctx: Context, found: Problem, thrown: unknown, logger: Logger | undefined): void {
  const exchange = exchangeOf(ctx);
  exchange.problem = found;
  if (found.status < 500) return;
  if (logger === undefined) {
    ctx.app.emit('error', thrown instanceof Error ? thrown : found, ctx);
    return;
  }
  const fields = { mapping: exchange.mapping, problem: found.slug, err: found.cause ?? thrown };
  if (found.slug === 'internal') logRequest(logger, 'error', ctx, fields, 'a request failed unexpectedly');
  else logRequest(logger, 'warn', ctx, fields, found.message);
}

/** A client that leaves breaks what was reading from it or writing to it: the access log tells of it, and it is no fault. */
function isDeparture(ctx: Context, thrown: unknown): boolean {
  const { code } = Object(thrown) as { code?: unknown };
  return ctx.res.destroyed && ['ECONNRESET', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE'].includes(String(code));
}
