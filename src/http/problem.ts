/** The one error that a client may read: thrown anywhere, rendered in one middleware. */
import { STATUS_CODES } from 'node:http';
import { type ProblemSlug, problems } from './problems.ts';

/** One fault among several: `pointer` is a JSON pointer (RFC 6901) such as `#/query/limit`. */
export interface Fault {
  readonly pointer: string;
  readonly detail: string;
}

export interface ProblemOptions {
  /** For the client to read: what was wrong this time. */
  readonly detail?: string;
  readonly errors?: readonly Fault[];
  /** Members of the error body beside those that every error has, such as `alternatives` (RFC 9457 section 3.2). */
  readonly extension?: Readonly<Record<string, unknown>>;
  /** Response headers that belong to the error, such as `Allow` or `Retry-After`. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  /** For the log, never for the client. */
  readonly cause?: unknown;
  /** Where the status is settled elsewhere, as by an auth service. @default the table's */
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

type Told = Pick<Problem, 'status' | 'detail' | 'errors'> & Partial<Pick<Problem, 'extension'>>;

/** `infoUrl`: of the page about the problem. */
export function errorBody({ status, detail, errors, extension }: Told, infoUrl?: string): ErrorBody {
  const standard = {
    code: status,
    message: `${status}: ${STATUS_CODES[status] ?? 'Unknown'}`,
    ...(infoUrl === undefined ? {} : { info_url: infoUrl }),
    ...(detail === undefined ? {} : { detail }),
    ...(errors === undefined ? {} : { errors }),
  };
  // The standard ones first, and theirs are the values.
  return { ...standard, ...extension, ...standard };
}

/** Anything thrown, as a problem: what does not speak to the client is a bug, and reads 500. */
export function asProblem(thrown: unknown): Problem {
  if (thrown instanceof Problem) return thrown;
  if (!isExposedHttpError(thrown)) return problem('internal', { cause: thrown });
  const { status, message, headers } = thrown;
  return problem(slugOfStatus(status), {
    status,
    cause: thrown,
    ...(message === '' || message === STATUS_CODES[status] ? {} : { detail: message }),
    ...(headers === undefined ? {} : { headers }),
  });
}

interface ExposedHttpError extends Error {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The errors of Koa and its libraries say with `expose` that a client may read their message (http-errors). */
function isExposedHttpError(thrown: unknown): thrown is ExposedHttpError {
  if (!(thrown instanceof Error)) return false;
  const { status, expose } = thrown as { status?: unknown; expose?: unknown };
  return expose === true && typeof status === 'number' && status >= 400 && status < 500;
}

/** Several problems share a status; of 400 there is a general one among them, of 409 and 422 there is none. That of 410 is of versions alone. */
function slugOfStatus(status: number): ProblemSlug {
  const slugs = Object.keys(problems) as ProblemSlug[];
  const isSpecial = [400, 409, 410, 422].includes(status);
  return (isSpecial ? undefined : slugs.find((slug) => problems[slug].status === status)) ?? 'bad-request';
}
