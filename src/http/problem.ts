/** The one error that a client may read, its body, and pointers to what was wrong. */
import { type ProblemSlug, problems } from './problems.ts';
import { nodeHttp } from './server/node-http.ts';

/**
 * One fault among several: of the part of the body at a JSON pointer (RFC 6901) such as `/check_in`, or of the query
 * argument with a name; with neither, of the whole query.
 */
export interface Fault {
  readonly pointer?: string;
  readonly parameter?: string;
  readonly detail: string;
}

export interface ProblemOptions {
  /** For the client: what was wrong this time. */
  readonly detail?: string;
  readonly errors?: readonly Fault[];
  /** More members of the error body, such as `alternatives` (RFC 9457 section 3.2). */
  readonly extension?: Readonly<Record<string, unknown>>;
  /** Response headers of the error, such as `Allow` or `Retry-After`. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  /** For the log, never for the client. */
  readonly cause?: unknown;
  /** For a status that another party chose, such as an auth service. @default that of the table of problems */
  readonly status?: number;
}

/** The error body of the API: `code` equals the HTTP status, `message` is `<status>: <reason phrase>`; members of `extension` follow. */
export interface ErrorBody {
  readonly code: number;
  readonly message: string;
  readonly info_url?: string;
  readonly detail?: string;
  readonly errors?: readonly Fault[];
}

/** Thrown anywhere; problem-responses.ts makes it a response. */
export class Problem extends Error {
  override readonly name = 'Problem';
  readonly slug: ProblemSlug;
  readonly status: number;
  readonly detail: string | undefined;
  readonly errors: readonly Fault[] | undefined;
  readonly extension: Readonly<Record<string, unknown>> | undefined;
  readonly headers: Readonly<Record<string, string | readonly string[]>> | undefined;

  constructor(slug: ProblemSlug, options: ProblemOptions = {}) {
    super(options.detail ?? problems[slug].meaning, { cause: options.cause });
    this.slug = slug;
    this.status = options.status ?? problems[slug].status;
    this.detail = options.detail;
    this.errors = options.errors;
    this.extension = options.extension;
    this.headers = options.headers;
  }
}

export function problem(slug: ProblemSlug, options?: ProblemOptions): Problem {
  return new Problem(slug, options);
}

/** Of a server that stops, for clients. */
export const stopping = 'The server is stopping.';

/** `detail`: why, for clients. */
export function notReady(detail: string): Problem {
  return problem('not-ready', { detail, headers: { 'Retry-After': '1' } });
}

type BodyParts = Pick<Problem, 'status' | 'detail' | 'errors'> & Partial<Pick<Problem, 'extension'>>;

/** `infoUrl`: of the page about the problem. */
export function errorBody({ status, detail, errors, extension }: BodyParts, infoUrl?: string): ErrorBody {
  const standard = {
    code: status,
    message: `${status}: ${reasonOf(status)}`,
    ...(infoUrl === undefined ? {} : { info_url: infoUrl }),
    ...(detail === undefined ? {} : { detail }),
    ...(errors === undefined ? {} : { errors }),
  };
  // Spread twice: the standard members come first, and an extension cannot replace them.
  return { ...standard, ...extension, ...standard };
}

/** Where Node's reason phrases are older than RFC 9110. */
const newReasons: Readonly<Record<number, string>> = { 413: 'Content Too Large', 422: 'Unprocessable Content' };

const { STATUS_CODES, validateHeaderName, validateHeaderValue } = nodeHttp;

export function reasonOf(status: number): string {
  return newReasons[status] ?? STATUS_CODES[status] ?? 'Unknown';
}

/** Anything thrown, as a problem: an error that is not meant for clients is a bug, and reads 500. */
export function problemOf(thrown: unknown): Problem {
  if (thrown instanceof Problem) return thrown;
  if (isProblemOfCopy(thrown)) return new Problem(thrown.slug, thrown as ProblemOptions);
  if (!isExposedHttpError(thrown)) return problem('internal', { cause: thrown });
  const { status, message } = thrown;
  try {
    return problem(slugOfStatus(status), {
      status,
      cause: thrown,
      ...(message === '' || message === STATUS_CODES[status] ? {} : { detail: message }),
      headers: sendableHeaders(thrown.headers ?? {}),
    });
  } catch (fault) {
    const why = `HTTP cannot carry the headers of a thrown error: ${(fault as Error).message}`;
    return problem('internal', { cause: new TypeError(why, { cause: thrown }) });
  }
}

/** They describe the body, which is the error body, or how it is sent. */
const ownHeaders = new Set(['content-length', 'content-type', 'trailer', 'transfer-encoding']);

/** Without those of the body itself. Throws TypeError for what HTTP cannot carry. */
function sendableHeaders(headers: object): Readonly<Record<string, string | readonly string[]>> {
  const others = Object.entries(headers).filter(
    ([name, value]) => value !== undefined && !ownHeaders.has(name.toLowerCase()),
  );
  return Object.fromEntries(others.map(([name, value]) => [name, sendable(name, value)]));
}

function sendable(name: string, value: unknown): string | string[] {
  validateHeaderName(name);
  if (Array.isArray(value)) return value.map((item) => sendableText(name, item));
  return sendableText(name, value);
}

function sendableText(name: string, value: unknown): string {
  if (typeof value !== 'string' && typeof value !== 'number')
    throw new TypeError(`"${name}" is ${typeof value}, no text`);
  validateHeaderValue(name, String(value));
  return String(value);
}

/** `/room/0`: points into a request body; the whole body is `''`. */
export function bodyPointer(path: readonly PropertyKey[]): string {
  return path.map((step) => `/${escapePointer(String(step))}`).join('');
}

/** A fault of a query argument; of the whole query where `name` is empty. */
export function queryFault(name: string, detail: string): Fault {
  return name === '' ? { detail } : { parameter: shorten(name), detail };
}

/** Of the whole query, where it may have so many characters. */
export function longQueryFault(lengthMax: number): Fault {
  return queryFault('', `The query is longer than ${lengthMax} characters.`);
}

/** A client's own text, made short enough to be repeated to it. */
export function quote(text: string): string {
  return JSON.stringify(shorten(text));
}

const shortLengthMax = 40;

/** At most 40 whole characters: half a surrogate pair could not be percent-encoded. */
function shorten(text: string): string {
  const characters = [...text.slice(0, 2 * shortLengthMax + 2)];
  return characters.length <= shortLengthMax ? text : `${characters.slice(0, shortLengthMax).join('')}…`;
}

/** RFC 6901 section 3. */
function escapePointer(name: string): string {
  return shorten(name).replaceAll('~', '~0').replaceAll('/', '~1');
}

/** Of another copy of this package in the process, such as one that a service brings along. */
function isProblemOfCopy(thrown: unknown): thrown is Problem {
  return thrown instanceof Error && thrown.name === 'Problem' && Object.hasOwn(problems, (thrown as Problem).slug);
}

interface ExposedHttpError extends Error {
  readonly status: number;
  readonly headers?: object | null;
}

/** Koa and its libraries mark errors whose message a client may read with `expose` (http-errors). */
function isExposedHttpError(thrown: unknown): thrown is ExposedHttpError {
  if (!(thrown instanceof Error)) return false;
  const { status, message, expose } = thrown as { status?: unknown; message: unknown; expose?: unknown };
  if (expose !== true || typeof message !== 'string') return false;
  return Number.isInteger(status) && Number(status) >= 400 && Number(status) < 500;
}

/** The problems with these statuses mean something narrower than the status: an error from elsewhere becomes `bad-request`. */
const narrowStatuses = [400, 409, 410, 422];

function slugOfStatus(status: number): ProblemSlug {
  const slugs = Object.keys(problems) as ProblemSlug[];
  const found = narrowStatuses.includes(status) ? undefined : slugs.find((slug) => problems[slug].status === status);
  return found ?? 'bad-request';
}
