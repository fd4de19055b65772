/** The error class that clients may see, its response body, and pointers to the faults in a request. */
import { truncate } from '#foundation';
import { type ProblemKind, type ProblemSlug, type ProblemTable, problems } from './problems.ts';
import { nodeHttp } from './server/node-http.ts';

/**
 * One fault of a request. `pointer` is a JSON pointer into the body (RFC 6901), such as `/check_in`, and `parameter` is
 * the name of a query argument. With neither, the fault concerns the query as a whole.
 */
export interface Fault {
  readonly pointer?: string;
  readonly parameter?: string;
  readonly detail: string;
}

export interface ProblemOptions {
  /** Tells the client what was wrong with this request. */
  readonly detail?: string;
  readonly errors?: readonly Fault[];
  /** Additional members of the error body, such as `alternatives` (RFC 9457 section 3.2). */
  readonly extension?: Readonly<Record<string, unknown>>;
  /** Headers of the error response, such as `Allow`. A `Retry-After` replaces that of the table of problems. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  /** Logged, but never shown to the client. */
  readonly cause?: unknown;
  /** A status chosen by another party, such as an auth service. @default the status in the table of problems */
  readonly status?: number;
}

/** `code` is the HTTP status, `message` is `<status>: <reason phrase>`. The members of `extension` follow. */
export interface ErrorBody {
  readonly code: number;
  readonly message: string;
  readonly info_url?: string;
  readonly detail?: string;
  readonly errors?: readonly Fault[];
}

/** An error that can be thrown anywhere. problem-responses.ts turns it into a response. */
export class Problem extends Error {
  override readonly name = 'Problem';
  readonly slug: string;
  readonly kind: ProblemKind;
  readonly status: number;
  readonly detail: string | undefined;
  readonly errors: readonly Fault[] | undefined;
  readonly extension: Readonly<Record<string, unknown>> | undefined;
  readonly headers: Readonly<Record<string, string | readonly string[]>> | undefined;

  constructor(slug: string, kind: ProblemKind, options: ProblemOptions = {}) {
    super(options.detail ?? kind.meaning, { cause: options.cause });
    this.slug = slug;
    this.kind = kind;
    this.status = options.status ?? kind.status;
    this.detail = options.detail;
    this.errors = options.errors;
    this.extension = options.extension;
    this.headers = withRetryAfter(options.headers, kind);
  }
}

function withRetryAfter(headers: ProblemOptions['headers'], { retryAfterSeconds }: ProblemKind): Problem['headers'] {
  if (retryAfterSeconds === undefined) return headers;
  const isGiven = Object.keys(headers ?? {}).some((name) => name.toLowerCase() === 'retry-after');
  return isGiven ? headers : { 'Retry-After': String(retryAfterSeconds), ...headers };
}

export interface DefinedProblems<Slug extends string> {
  /** The problems that were defined, without those that every API has. */
  readonly kinds: Readonly<Record<Slug, ProblemKind>>;
  /** Creates one of them, or one that every API has. Throw it. */
  readonly problem: (slug: Slug | ProblemSlug, options?: ProblemOptions) => Problem;
}

/**
 * Defines problems by their slugs, such as `{ 'out-of-stock': { status: 409, meaning: '…', remedy: '…' } }`, in addition
 * to those that every API has.
 * @throws {TypeError} for a slug that is taken or is not made of lower-case words, and for a status that is no error.
 */
export function defineProblems<const Table extends ProblemTable>(kinds: Table): DefinedProblems<keyof Table & string> {
  for (const [slug, { status }] of Object.entries(kinds)) checkDefinition(slug, status);
  const all: ProblemTable = { ...problems, ...kinds };
  return Object.freeze({
    kinds,
    problem: (slug: string, options?: ProblemOptions) => createProblem(all, slug, options),
  });
}

function checkDefinition(slug: string, status: number): void {
  if (Object.hasOwn(problems, slug)) throw new TypeError(`every API has a problem "${slug}": give yours another name`);
  if (!/^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/.test(slug))
    throw new TypeError(`a problem cannot be named "${slug}": use lower-case words with hyphens, such as out-of-stock`);
  if (!Number.isInteger(status) || status < 400 || status > 599)
    throw new TypeError(`the problem "${slug}" needs a status from 400 to 599, not ${status}`);
}

function createProblem(table: ProblemTable, slug: string, options?: ProblemOptions): Problem {
  const kind = Object.hasOwn(table, slug) ? table[slug] : undefined;
  if (kind === undefined) throw new TypeError(`there is no problem "${slug}"; known: ${Object.keys(table).join(', ')}`);
  return new Problem(slug, kind, options);
}

/** Creates a problem that every API has. */
export function problem(slug: ProblemSlug, options?: ProblemOptions): Problem {
  return createProblem(problems, slug, options);
}

/** The `detail` of responses during shutdown. */
export const stopping = 'The server is stopping.';

/** `detail` is the reason, for the client. */
export function notReady(detail: string): Problem {
  return problem('not-ready', { detail });
}

type BodyParts = Pick<Problem, 'status' | 'detail' | 'errors'> & Partial<Pick<Problem, 'extension'>>;

/** `infoUrl` is the URL of the page about the problem. */
export function errorBody({ status, detail, errors, extension }: BodyParts, infoUrl?: string): ErrorBody {
  const standard = {
    code: status,
    message: `${status}: ${reasonOf(status)}`,
    ...(infoUrl === undefined ? {} : { info_url: infoUrl }),
    ...(detail === undefined ? {} : { detail }),
    ...(errors === undefined ? {} : { errors }),
  };
  // Spread twice, so that standard members come first and cannot be overridden by the extension.
  return { ...standard, ...extension, ...standard };
}

/** The reason phrases of RFC 9110 where Node still has the older ones. */
const newReasons: Readonly<Record<number, string>> = { 413: 'Content Too Large', 422: 'Unprocessable Content' };

const { STATUS_CODES, validateHeaderName, validateHeaderValue } = nodeHttp;

export function reasonOf(status: number): string {
  return newReasons[status] ?? STATUS_CODES[status] ?? 'Unknown';
}

/** Converts anything thrown to a problem. An error that is not meant for clients is a bug and becomes a 500. */
export function problemOf(thrown: unknown): Problem {
  if (thrown instanceof Problem) return thrown;
  if (isProblemFromOtherCopy(thrown)) return new Problem(thrown.slug, thrown.kind, thrown as ProblemOptions);
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
    const why = `a thrown error has headers that HTTP does not allow: ${(fault as Error).message}`;
    return problem('internal', { cause: new TypeError(why, { cause: thrown }) });
  }
}

/** Headers of a thrown error that must not be copied, because they describe a body or its framing. */
const bodyHeaders = new Set(['content-length', 'content-type', 'trailer', 'transfer-encoding']);

/** Removes the headers that describe a body. Throws a TypeError for names and values that HTTP does not allow. */
function sendableHeaders(headers: object): Readonly<Record<string, string | readonly string[]>> {
  const others = Object.entries(headers).filter(
    ([name, value]) => value !== undefined && !bodyHeaders.has(name.toLowerCase()),
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
    throw new TypeError(`the value of "${name}" must be text, not ${typeof value}`);
  validateHeaderValue(name, String(value));
  return String(value);
}

/** Formats a JSON pointer into the request body: `/room/0`, or `''` for the whole body. */
export function bodyPointer(path: readonly PropertyKey[]): string {
  return path.map((step) => `/${escapePointer(String(step))}`).join('');
}

/** A fault of a query argument, or of the whole query if `name` is empty. */
export function queryFault(name: string, detail: string): Fault {
  return name === '' ? { detail } : { parameter: truncate(name, nameCharactersMax), detail };
}

/** The fault of a query longer than `lengthMax` characters. */
export function longQueryFault(lengthMax: number): Fault {
  return queryFault('', `The query is longer than ${lengthMax} characters.`);
}

/** Of a name that a client has sent. */
const nameCharactersMax = 40;

/** RFC 6901 section 3. */
function escapePointer(name: string): string {
  return truncate(name, nameCharactersMax).replaceAll('~', '~0').replaceAll('/', '~1');
}

/** Recognises a `Problem` from another copy of this package, such as one that a service depends on. */
function isProblemFromOtherCopy(thrown: unknown): thrown is Problem {
  if (!(thrown instanceof Error) || thrown.name !== 'Problem') return false;
  const { slug, kind } = thrown as Partial<Problem>;
  return typeof slug === 'string' && Number.isInteger(kind?.status);
}

interface ExposedHttpError extends Error {
  readonly status: number;
  readonly headers?: object | null;
}

/** Koa and its libraries set `expose` on errors whose message clients may see (http-errors). */
function isExposedHttpError(thrown: unknown): thrown is ExposedHttpError {
  if (!(thrown instanceof Error)) return false;
  const { status, message, expose } = thrown as { status?: unknown; message: unknown; expose?: unknown };
  if (expose !== true || typeof message !== 'string') return false;
  return Number.isInteger(status) && Number(status) >= 400 && Number(status) < 500;
}

/** Our problems with these statuses are too specific for errors from other libraries, which become `bad-request`. */
const specificStatuses = [400, 409, 410, 422];

function slugOfStatus(status: number): ProblemSlug {
  const slugs = Object.keys(problems) as ProblemSlug[];
  const found = specificStatuses.includes(status) ? undefined : slugs.find((slug) => problems[slug].status === status);
  return found ?? 'bad-request';
}
