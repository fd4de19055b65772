/** The middleware that turns every thrown error into a response. */
import { inspect } from 'node:util';
import type { Context, Middleware, Next } from 'koa';
import { gatewayRoot, requestContext } from './context.ts';
import type { ProblemNotes } from './html/problem-page.ts';
import { createOutageLogs, type Logger, logRequest, type OutageLogs, requestLogFields } from './log/log.ts';
import { errorBody, Problem, problem, problemOf, reasonOf } from './problem.ts';
import { problems, problemTitle } from './problems.ts';
import { createRepresentations, type Formatter, type Representations } from './representations.ts';
import { bodyOfHead } from './server/request-bodies.ts';

export interface ProblemResponsesOptions {
  readonly representations?: Representations;
  /** @default the `error` event of the app, which Koa prints */
  readonly logger?: Logger;
  /** Shared with the apps behind it. @default those of `logger` alone */
  readonly outages?: OutageLogs;
  /** Turns an error of another module into a problem; undefined leaves it to the default. */
  readonly toProblem?: ((thrown: unknown) => Problem | undefined) | undefined;
  /**
   * The path of the pages about problems below the root of the server, or of the gateway in front, with a slash at the end; each page has the name of its
   * problem. @default no pages: errors have no `info_url`
   */
  readonly problemPagesPath?: string | undefined;
}

/** Headers that describe the representation which the error replaces. */
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
 * Renders a thrown error as the error body, in the representation that `Accept` asks for. A `Problem` is shown to the
 * client; any other error reads 500, and its cause goes to the log and the diagnostics alone.
 */
export function createProblemResponses(options: ProblemResponsesOptions = {}): Middleware {
  const { representations = createRepresentations(), logger, toProblem, problemPagesPath } = options;
  const { outages = logger && createOutageLogs({ logger }) } = options;
  return async function problemResponses(ctx: Context, next: Next) {
    try {
      await next();
      outages?.answered(requestContext(ctx).service);
    } catch (raw) {
      const thrown = readable(raw);
      const found = toProblem?.(thrown) ?? problemOf(thrown);
      if (!isClientGone(ctx, thrown)) report(ctx, found, thrown, logger, outages);
      await bodyOfHead(ctx.req);
      if (ctx.headerSent) ctx.res.destroy();
      else write(ctx, found);
    }
  };

  function write(ctx: Context, found: Problem): void {
    const formatter = representations.chooseForError(ctx.req.headers.accept);
    try {
      writeProblem(ctx, found, formatter, problemPagesPath);
    } catch (cause) {
      // A problem of a service may have what no header or body can carry.
      const unsendable = problem('internal', { cause });
      report(ctx, unsendable, cause, logger, outages);
      writeProblem(ctx, unsendable, formatter, problemPagesPath);
    }
  }
}

/**
 * What was thrown, in a form that the error body, loggers and tracers can read without throwing again. pino marks an error
 * while it writes it, so a frozen one gets an heir that reads the same.
 */
function readable(thrown: unknown): unknown {
  if (Object(thrown) !== thrown) return thrown;
  try {
    // Readable as it is, and in a flood of refusals its stack would cost the most.
    if (thrown instanceof Problem) return thrown;
    if (!(thrown instanceof Error)) return new Error(`what was thrown is no error: ${inspect(thrown)}`);
    readAll(thrown);
    return Object.isExtensible(thrown) ? thrown : Object.create(thrown);
  } catch {
    return new TypeError('what was thrown cannot be read: one of its properties throws');
  }
}

/** The properties that loggers and tracers read. */
function readAll(thrown: Error): void {
  String(thrown);
  void thrown.stack;
  void thrown.cause;
  for (const name in thrown) void thrown[name as keyof Error];
}

function writeProblem(ctx: Context, found: Problem, formatter: Formatter, pagesPath: string | undefined): void {
  const body = errorBody(found, pagesPath === undefined ? undefined : infoUrlOf(ctx, found, pagesPath));
  for (const name of staleHeaders) ctx.remove(name);
  ctx.status = found.status;
  ctx.message = reasonOf(found.status);
  ctx.set({ 'Cache-Control': 'no-store', ...formatter.headers });
  for (const [name, value] of Object.entries(found.headers ?? {})) setHeader(ctx, name, value);
  ctx.vary('Accept');
  ctx.set('Content-Type', formatter.contentType);
  // Bytes: with a text Node would write the headers as UTF-8 too, those of an auth service among them.
  ctx.body = Buffer.from(formatter.format(body, body.message, notesOn(ctx, found)));
  // A handler may have turned this off to write to the socket itself; it has not begun, or the headers would have been sent.
  ctx.respond = true;
}

/** Undefined for a status that another party chose. */
function infoUrlOf(ctx: Context, found: Problem, pagesPath: string): string | undefined {
  if (!isAsInTable(found)) return undefined;
  return requestContext(ctx).addresses.origin(ctx.req) + gatewayRoot(ctx) + pagesPath + found.slug;
}

function notesOn(ctx: Context, found: Problem): ProblemNotes {
  const { meaning, remedy } = isAsInTable(found) ? problems[found.slug] : { meaning: undefined, remedy: undefined };
  return { title: problemTitle(found.slug), meaning, remedy, requestId: requestContext(ctx).requestId };
}

/** False for a status that another party chose, such as an auth service that prefers 404: the table describes its own. */
function isAsInTable({ slug, status }: Problem): boolean {
  return status === problems[slug].status;
}

/** Adds to `Vary`, since @koa/cors attaches its own to the error. */
function setHeader(ctx: Context, name: string, value: string | readonly string[]): void {
  const copy = typeof value === 'string' ? value : [...value];
  if (name.toLowerCase() === 'vary') ctx.vary(copy);
  else ctx.set(name, copy);
}

function report(
  ctx: Context,
  found: Problem,
  thrown: unknown,
  logger: Logger | undefined,
  outages: OutageLogs | undefined,
): void {
  const context = requestContext(ctx);
  context.problem = found;
  if (found.status < 500) return;
  if (logger === undefined) {
    ctx.app.emit('error', thrown instanceof Error ? thrown : found, ctx);
    return;
  }
  const fields = { mapping: context.mapping, problem: found.slug, err: found.cause ?? thrown };
  if (found.slug === 'internal') logRequest(logger, 'error', ctx, fields, 'a request failed unexpectedly');
  else if (!isLogged(found)) {
    const { service } = context;
    const upstream = found.slug === 'storage-unavailable' ? 'the database' : (service ?? 'this server');
    outages?.failed(service, upstream, { ...requestLogFields(ctx), ...fields }, found.message);
  }
}

/** The stage that asked has logged the outage of an auth or rate-limit service, with its cause. */
function isLogged({ slug, cause }: Problem): boolean {
  return cause !== undefined && (slug === 'auth-unavailable' || slug === 'ratelimit-unavailable');
}

const lostConnection = new Set<unknown>(['ECONNRESET', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE']);

/** A client that leaves breaks the streams from and to it. That is no fault, and the access log has it. */
function isClientGone(ctx: Context, thrown: unknown): boolean {
  const { code } = Object(thrown) as { code?: unknown };
  return ctx.res.destroyed && lostConnection.has(code);
}
