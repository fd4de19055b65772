/** The auth service with its two faces: an answer for the gateway beside it, and an HTTP service for any proxy. */
import { validateHeaderName } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import Koa, { type Context } from 'koa';
import { createProblemResponses, type Logger, type Problem, problem, requestContext, silentLogger } from '#http';
import type { AuthAnswer, AuthPort } from './auth-port.ts';
import type { Authenticator, Verdict } from './authenticator.ts';

export interface AuthServiceOptions {
  readonly authenticator: Authenticator;
  /** What the credentials are for, as browsers show it: printable ASCII. @default 'travel' */
  readonly realm?: string;
  /** Carries the user's name to the services behind. @default 'x-travel-user' */
  readonly userHeader?: string;
  readonly logger?: Logger;
}

export interface AuthService {
  /** For a gateway that runs beside it. Wrong or no credentials: 401. Too many guesses at once: 503. Neither has a body. */
  readonly answer: AuthPort;
  /**
   * For another proxy: answers any path and method by the Authorization header alone. 200 with the user header in its
   * canonical case and an empty body, or 401 or 503 with the error body.
   */
  readonly app: Koa;
}

/** @throws {TypeError} for a realm or a header name that HTTP cannot carry. */
export function createAuthService({
  authenticator,
  realm = 'travel',
  userHeader = 'x-travel-user',
  logger = silentLogger,
}: AuthServiceOptions): AuthService {
  validateHeaderName(userHeader);
  const refusals = createRefusals(realm);
  return Object.freeze({
    answer: createAnswer(authenticator, refusals, userHeader.toLowerCase()),
    app: createApp(authenticator, refusals, canonicalCase(userHeader), logger),
  });
}

type RefusalKind = Exclude<Verdict['kind'], 'user'>;

/** What both faces say to who is not let in. */
interface Refusal {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly toProblem: () => Problem;
}

type Refusals = Readonly<Record<RefusalKind, Refusal>>;

function createRefusals(realm: string): Refusals {
  const unauthorized = createRefusal('unauthorized', { 'WWW-Authenticate': formatChallenge(realm) });
  const busy = createRefusal(
    'auth-unavailable',
    { 'Retry-After': '1' },
    'Too many credentials are being checked at once.',
  );
  // No credentials and wrong ones get the same answer: it tells nobody which users exist.
  return { none: unauthorized, wrong: unauthorized, busy };
}

function createRefusal(
  slug: 'unauthorized' | 'auth-unavailable',
  headers: Readonly<Record<string, string>>,
  detail?: string,
): Refusal {
  const toProblem = () => problem(slug, { headers, ...(detail === undefined ? {} : { detail }) });
  return {
    status: toProblem().status,
    headers: Object.freeze(headers),
    toProblem,
  };
}

/** RFC 7617 section 2.1; the realm is a quoted-string (RFC 9110 section 5.6.4). */
function formatChallenge(realm: string): string {
  if (!/^[ -~]*$/.test(realm)) throw new TypeError(`the realm ${JSON.stringify(realm)} is not printable ASCII`);
  return `Basic realm="${realm.replace(/["\\]/g, '\\$&')}", charset="UTF-8"`;
}

function createAnswer(authenticator: Authenticator, refusals: Refusals, userHeader: string): AuthPort {
  // A remembered verdict is the same object each time, so its answer is made once and goes when the verdict does.
  const allowed = new WeakMap<Verdict, AuthAnswer>();
  const denied = {
    none: createDenial(refusals.none),
    wrong: createDenial(refusals.wrong),
    busy: createDenial(refusals.busy),
  };

  function answerTo(verdict: Verdict): AuthAnswer {
    return verdict.kind === 'user' ? (allowed.get(verdict) ?? allow(verdict, verdict.name)) : denied[verdict.kind];
  }

  function allow(verdict: Verdict, name: string): AuthAnswer {
    const answer: AuthAnswer = Object.freeze({ outcome: 'allow', headers: Object.freeze({ [userHeader]: name }) });
    allowed.set(verdict, answer);
    return answer;
  }

  return function answer(request) {
    const verdict = authenticator.authenticate(request.headers.authorization);
    return verdict instanceof Promise ? verdict.then(answerTo, explain) : answerTo(verdict);
  };
}

function createDenial({ status, headers }: Refusal): AuthAnswer {
  return Object.freeze({ outcome: 'deny', status, headers });
}

function explain(thrown: unknown): AuthAnswer {
  return {
    outcome: 'error',
    reason: `the credentials could not be checked: ${String(thrown)}`,
  };
}

function createApp(authenticator: Authenticator, refusals: Refusals, userHeader: string, logger: Logger): Koa {
  const app = new Koa();
  app.use(createProblemResponses({ logger }));
  app.use(async function authenticate(ctx) {
    const verdict = await authenticator.authenticate(ctx.req.headers.authorization);
    if (!ctx.req.complete) await closeOverMissingBody(ctx);
    if (verdict.kind !== 'user') throw refusals[verdict.kind].toProblem();
    requestContext(ctx).user = verdict.name;
    writeIdentity(ctx, userHeader, verdict.name);
  });
  return app;
}

/**
 * A proxy may hand on `Content-Length` without the body, as nginx does unless it is told otherwise. The next request on
 * that connection, which is somebody else's, would be taken for the body: there must be none.
 */
async function closeOverMissingBody(ctx: Context): Promise<void> {
  // A body that came along with the headers is through the parser by then.
  await setImmediate();
  if (!ctx.req.complete) ctx.set('Connection', 'close');
}

function writeIdentity(ctx: Context, userHeader: string, name: string): void {
  ctx.status = 200;
  ctx.set({ [userHeader]: name, 'Cache-Control': 'no-store' });
  ctx.body = '';
  // Koa calls any string text/plain, and here there is no text.
  ctx.remove('Content-Type');
}

/** Node sends a name as it is written: `x-travel-user` as `X-Travel-User`, which is how people read it. */
function canonicalCase(name: string): string {
  return name.toLowerCase().replace(/(?<![^-])[a-z]/g, (letter) => letter.toUpperCase());
}
