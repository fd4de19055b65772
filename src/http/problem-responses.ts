/** The one place where a throw becomes a response. */
import type { Context, Middleware, Next } from 'koa';
import { exchangeOf } from './exchange.ts';
import { type Logger, silentLogger } from './logger.ts';
import { asProblem, errorBody, type Problem } from './problem.ts';
import { createRepresentations, type Representations } from './representations.ts';

export interface ProblemResponsesOptions {
  readonly representations?: Representations;
  readonly logger?: Logger;
  /** Puts an error of another module in our terms; undefined leaves it to the default. */
  readonly translate?: (thrown: unknown) => Problem | undefined;
}

/** Headers that speak of the representation which the error replaces. */
const staleHeaders = [
  'Content-Encoding',
  'Content-Disposition',
  'Content-Language',
  'Content-Length',
  'Content-Range',
  'Accept-Ranges',
  'ETag',
  'Last-Modified',
  'Link',
  'Transfer-Encoding',
];

/**
 * Renders what is thrown below it as the error body, in the representation that `Accept` asks for. A `Problem` is told
 * to the client; anything else reads 500 and is told to the log, with its cause.
 */
export function createProblemResponses(options: ProblemResponsesOptions = {}): Middleware {
  const { representations = createRepresentations(), logger = silentLogger, translate } = options;
  return async function problemResponses(ctx: Context, next: Next) {
    try {
      await next();
    } catch (thrown) {
      const found = translate?.(thrown) ?? asProblem(thrown);
      report(ctx, found, thrown, logger);
      if (ctx.headerSent) ctx.res.destroy();
      else writeProblem(ctx, found, representations);
    }
  };
}

/** Writes the error body and the headers that belong to it, in place of whatever was prepared. */
export function writeProblem(ctx: Context, found: Problem, representations: Representations): void {
  const formatter = representations.chooseForError(ctx.req.headers.accept);
  const body = errorBody(found);
  for (const name of staleHeaders) ctx.remove(name);
  ctx.status = found.status;
  ctx.set({ 'Cache-Control': 'no-store', ...formatter.headers });
  for (const [name, value] of Object.entries(found.headers ?? {}))
    ctx.set(name, typeof value === 'string' ? value : [...value]);
  ctx.vary('Accept');
  ctx.set('Content-Type', formatter.contentType);
  ctx.body = formatter.format(body, body.message);
}

function report(ctx: Context, found: Problem, thrown: unknown, logger: Logger): void {
  if (found.status < 500) return;
  const { requestId, mapping } = exchangeOf(ctx);
  const fields = {
    requestId,
    mapping,
    problem: found.slug,
    err: found.cause ?? thrown,
  };
  if (found.slug === 'internal') logger.error(fields, 'a request failed unexpectedly');
  else logger.warn(fields, found.message);
}
