/** The middleware that renders every thrown error as a response. */
import { inspect } from 'node:util';
import type { Context, Middleware, Next } from 'koa';
import { createOutageLogs, type Logger, type OutageLogs } from '#foundation';
import { gatewayRoot, type RequestContext, requestContext } from './context.ts';
import { grpcTypeOf } from './grpc/content-type.ts';
import { refusalHeaders } from './grpc/refusal.ts';
import { grpcStatusOfRefusal } from './grpc/status.ts';
import type { ProblemNotes } from './html/pages.ts';
import { type PageRoute, placeOf } from './html/places.ts';
import { countAs, hasClientLeft, replaceStatus } from './log/final-status.ts';
import { logRequest, requestLogFields } from './log/request-log.ts';
import { errorBody, Problem, problem, problemOf, reasonOf } from './problem.ts';
import { problemTitle } from './problems.ts';
import { createRepresentations, type Formatter, isPage, type Representations } from './representations.ts';
import { parseBufferedBody } from './server/node-fixes.ts';

export interface ProblemResponsesOptions {
  readonly representations?: Representations;
  /** @default errors are emitted as `error` events of the app, which Koa prints */
  readonly logger?: Logger;
  /** Outage logs to share with inner apps. @default new ones that use `logger` */
  readonly outages?: OutageLogs;
  /** Converts an error of another module to a problem. Return undefined for the default conversion. */
  readonly toProblem?: ((thrown: unknown) => Problem | undefined) | undefined;
  /**
   * The path of the problem pages, relative to the root of the server or of the gateway in front, with a trailing
   * slash, or a function that returns the whole public path. The slug of a problem is appended.
   * @default no pages: errors have no `info_url`
   */
  readonly problemPagesPath?: PagesPath;
  /**
   * Whether a gRPC call gets a status of gRPC, with the status 200 of HTTP. Must be false for an app that decides for a
   * proxy whether requests may pass. @default true
   */
  readonly refusesInGrpc?: boolean;
}

export type PagesPath = string | ((ctx: Context) => string) | undefined;

const leftBefore = 'a request failed after its client had left';

/** Headers that describe the representation that the error replaces. */
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
 * Renders a thrown error as the error body, in the representation that `Accept` selects. A `Problem` is shown to the
 * client. Any other error becomes a 500 whose cause appears only in the log and the diagnostics. `page` are the pages of
 * the app to which the HTML page of an error links.
 */
export function createProblemResponses(options: ProblemResponsesOptions = {}, page?: PageRoute): Middleware {
  const { logger, outages = logger && createOutageLogs({ logger }) } = options;
  const { respond, reportBreak } = createRenderer({ ...options, logger, outages, page });
  return async function problemResponses(ctx: Context, next: Next) {
    const context = requestContext(ctx);
    context.reportBreak = reportBreak;
    try {
      await next();
      if (isAnswered(context)) outages?.answered(context.service);
    } catch (raw) {
      await respond(ctx, makeReadable(raw));
    }
  };
}

/**
 * Creates a function for middleware that may run in any Koa app, whether or not the app renders problems. It runs a check
 * and resolves to true. If the check throws, it renders the error as the response and resolves to false.
 * Never as a gRPC status with 200: the app may decide for a proxy whether requests may pass, with the status of HTTP.
 */
export function createGuard({ logger }: Pick<RendererOptions, 'logger'>) {
  const { respond } = createRenderer({ logger, outages: undefined, refusesInGrpc: false });
  return async function passes(ctx: Context, check: () => void | Promise<void>): Promise<boolean> {
    try {
      await check();
      return true;
    } catch (raw) {
      await respond(ctx, makeReadable(raw));
      return false;
    }
  };
}

type RendererOptions = Omit<ProblemResponsesOptions, 'logger' | 'outages'> & {
  readonly logger: Logger | undefined;
  readonly outages: OutageLogs | undefined;
  readonly page?: PageRoute | undefined;
};

function createRenderer(options: RendererOptions) {
  const { representations = createRepresentations(), logger, outages, toProblem, refusesInGrpc = true } = options;
  return { respond, reportBreak };

  async function respond(ctx: Context, thrown: unknown): Promise<void> {
    const found = toProblem?.(thrown) ?? problemOf(thrown);
    const reportIt = ctx.headerSent ? reportBreak : reportProblem;
    if (hasClientLeft(ctx.res)) logger?.debug?.({ ...requestLogFields(ctx), err: thrown }, leftBefore);
    else reportIt(ctx, found, thrown);
    await parseBufferedBody(ctx.req);
    if (ctx.headerSent) ctx.res.destroy();
    else write(ctx, found);
  }

  function reportProblem(ctx: Context, found: Problem, thrown: unknown): void {
    report(ctx, found, thrown, logger, outages);
  }

  function reportBreak(ctx: Context, found: Problem, thrown: unknown = found): void {
    reportProblem(ctx, found, thrown);
    replaceStatus(ctx.res, found.status);
  }

  function write(ctx: Context, found: Problem): void {
    try {
      writeAny(ctx, found);
    } catch (cause) {
      // A problem thrown by a service may have headers or members that cannot be sent.
      const unsendable = problem('internal', { cause });
      reportProblem(ctx, unsendable, cause);
      writeAny(ctx, unsendable);
    }
  }

  function writeAny(ctx: Context, found: Problem): void {
    for (const name of staleHeaders) ctx.remove(name);
    const grpcType = refusesInGrpc ? grpcTypeOf(ctx.req) : undefined;
    if (grpcType !== undefined) writeRefusal(ctx, found, grpcType);
    else writeProblem(ctx, found, representations.chooseForError(ctx.req.headers.accept), options);
    // A handler may have set this to false to write to the socket itself. It has not begun, because no headers were sent.
    ctx.respond = true;
  }
}

/**
 * Makes the thrown value safe to read for the error body, loggers and tracers. pino sets a property on errors that it
 * serialises, so a frozen error is wrapped in an object that inherits from it.
 */
function makeReadable(thrown: unknown): unknown {
  if (Object(thrown) !== thrown) return thrown;
  try {
    // A problem is always safe to read, and formatting its stack would make a flood of rejections expensive.
    if (thrown instanceof Problem) return thrown;
    if (!(thrown instanceof Error)) return new Error(`the thrown value is not an Error: ${inspect(thrown)}`);
    readProperties(thrown);
    return Object.isExtensible(thrown) ? thrown : Object.create(thrown);
  } catch {
    return new TypeError('the thrown value cannot be read: one of its properties throws');
  }
}

/** Reads the properties that loggers and tracers read, and throws if one of them does. */
function readProperties(thrown: Error): void {
  String(thrown);
  void thrown.stack;
  void thrown.cause;
  for (const name in thrown) void thrown[name as keyof Error];
}

type PageParts = Pick<RendererOptions, 'problemPagesPath' | 'page'>;

function writeProblem(ctx: Context, found: Problem, formatter: Formatter, options: PageParts): void {
  const pages = hasTableStatus(found) ? problemPagesOf(ctx, options.problemPagesPath) : undefined;
  const body = errorBody(found, pages && pages.infoUrl + found.slug);
  ctx.status = found.status;
  ctx.message = reasonOf(found.status);
  ctx.set({ 'Cache-Control': 'no-store', ...formatter.headers });
  for (const [name, value] of Object.entries(found.headers ?? {})) setHeader(ctx, name, value);
  ctx.vary('Accept');
  ctx.set('Content-Type', formatter.contentType);
  const notes = notesOn(ctx, found, pages && pages.type + found.slug);
  ctx.body = formatter.format(body, body.message, notes, isPage(formatter) ? placeOf(ctx, options.page) : undefined);
}

/** The response to a gRPC call. The counts show the status of the problem. */
function writeRefusal(ctx: Context, found: Problem, grpcType: string): void {
  ctx.status = 200;
  for (const [name, value] of Object.entries(found.headers ?? {})) setHeader(ctx, name, value);
  // That of another body, which an auth service has sent.
  ctx.remove('Content-Encoding');
  ctx.set(refusalHeaders(found, grpcType));
  // Without a length, the headers are the last frame over HTTP/2.
  ctx.body = '';
  ctx.remove('Content-Length');
  requestContext(ctx).grpcStatus = grpcStatusOfRefusal(found.status);
  countAs(ctx.res, found.status);
}

/** What comes before the slug of a problem in the `info_url` of an error and in its `type`. */
export interface ProblemPages {
  readonly infoUrl: string;
  readonly type: string;
}

export function problemPagesOf(ctx: Context, pagesPath: PagesPath): ProblemPages | undefined {
  if (pagesPath === undefined) return undefined;
  const path = typeof pagesPath === 'string' ? gatewayRoot(ctx) + pagesPath : pagesPath(ctx);
  const { addresses } = requestContext(ctx);
  return { infoUrl: addresses.origin(ctx.req) + path, type: addresses.configuredOrigin() + path };
}

function notesOn(ctx: Context, found: Problem, type: string | undefined): ProblemNotes {
  const { slug, kind } = found;
  const { meaning, remedy } = hasTableStatus(found) ? kind : { meaning: undefined, remedy: undefined };
  return { type, title: problemTitle(slug, kind), meaning, remedy, requestId: requestContext(ctx).requestId };
}

/** False if another party chose the status, such as an auth service that prefers 404. The table's text would not fit. */
function hasTableStatus({ kind, status }: Problem): boolean {
  return status === kind.status;
}

/** Appends to `Vary` instead of replacing it, because @koa/cors attaches its own `Vary` to the error. */
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
  else if (isOutage(found)) {
    const { service, upstream } = context;
    const failed = found.slug === 'storage-unavailable' ? 'the database' : (service ?? 'this server');
    outages?.failed(service, failed, { ...requestLogFields(ctx), service, upstream, ...fields }, found.message);
  }
}

/**
 * False for outages of an auth or rate-limit service, which the stage that called it has already logged, for passwords
 * that an auth service did not check, which it has logged itself, and for a `Destination` that the client chose.
 */
function isOutage({ slug, cause }: Problem): boolean {
  if (slug === 'auth-overloaded' || slug === 'destination-elsewhere') return false;
  return cause === undefined || (slug !== 'auth-unavailable' && slug !== 'ratelimit-unavailable');
}

/** False if another party responded instead of the service, such as an auth service, or if the client is gone. */
function isAnswered({ service, isAnswered }: RequestContext): boolean {
  return isAnswered || service === undefined;
}
