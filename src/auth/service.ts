/** The auth service: `check` for the gateway beside it, and an HTTP `app` for any other proxy. */
import type { IncomingHttpHeaders } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import Koa, { type Context } from 'koa';
import {
  createOncePerMinute,
  createProblemResponses,
  type Logger,
  nodeHttp,
  type ProblemSlug,
  problem,
  problems,
  requestContext,
  type Sender,
  silentLogger,
  userHeader,
} from '#http';
import type { Authenticator, Verdict } from './authenticator.ts';

/** What the auth service reads of a request: its method, its original path and query, and its headers. */
export interface AuthRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** Where it comes from. @default one place for all */
  readonly sender?: () => Sender;
}

/**
 * `allow`: headers to set on the routed request (lower-case names). `isAdmin`: a role of users.yaml, so only the auth
 * service of this process says it.
 * `deny`: the response to the client; without a body the gateway writes the error body of `status`.
 * `error`: there is no verdict; `reason` is for the log, never for the client.
 */
export type AuthDecision =
  | { readonly outcome: 'allow'; readonly headers: Readonly<Record<string, string>>; readonly isAdmin?: boolean }
  | {
      readonly outcome: 'deny';
      readonly status: number;
      readonly headers: Readonly<Record<string, string | readonly string[]>>;
      readonly body?: Uint8Array;
      /** The problem of a refusal without a body. @default one of its status */
      readonly slug?: ProblemSlug;
    }
  | { readonly outcome: 'error'; readonly reason: string };

/** The same for the auth service in this process and the one across HTTP. Answers without a promise when it can; never throws. */
export type AuthCheck = (request: AuthRequest) => AuthDecision | Promise<AuthDecision>;

export interface AuthServiceOptions {
  readonly authenticator: Authenticator;
  /** Shown by browsers when they ask for credentials: printable ASCII. A function is asked at each refusal. @default 'api' */
  readonly realm?: string | (() => string);
  /** Carries the user's name to the services. @default 'x-travel-user' */
  readonly userHeader?: string;
  readonly logger?: Logger;
}

export interface AuthService {
  /**
   * For a gateway in this process. Invalid or missing credentials: 401. Too many failed logins: 429. Too many checks at
   * once: 503. None has a body.
   */
  readonly check: AuthCheck;
  /** The same with another realm. */
  readonly checkFor: (realm: string) => AuthCheck;
  /**
   * For another proxy: answers any path and method by the Authorization header alone. 200 with the user header in its
   * canonical case and an empty body, or 401 or 503 with the error body. Too many failed logins are 401 with `Retry-After`:
   * a proxy may take any other status for a failure of the service. With `Prefer: return=minimal` it answers as `check` does,
   * without a body.
   */
  readonly app: Koa;
}

/** @throws {TypeError} for a realm or a header name that HTTP cannot carry, and for what is no authenticator. */
export function createAuthService({
  authenticator,
  realm = 'api',
  userHeader: header = userHeader,
  logger = silentLogger,
}: AuthServiceOptions): AuthService {
  nodeHttp.validateHeaderName(header);
  if (typeof authenticator?.authenticate !== 'function')
    throw new TypeError('the authenticator has no function `authenticate`: createAuthenticator makes one that has');
  const refusals = createRefusals(realm);
  const logThrottled = createThrottleLog(logger);
  const watched: Authenticator = {
    authenticate(authorization, sender) {
      const verdict = authenticator.authenticate(authorization, sender);
      return verdict instanceof Promise ? verdict.then(logThrottled) : logThrottled(verdict);
    },
  };
  return Object.freeze({
    check: createCheck(watched, refusals, header.toLowerCase()),
    checkFor: (other: string) => createCheck(watched, createRefusals(other), header.toLowerCase()),
    app: createApp(watched, refusals, canonicalCase(header), logger),
  });
}

type Refused = Exclude<Verdict, { readonly kind: 'user' }>;
type Refusal = Readonly<{ slug: ProblemSlug; headers: Readonly<Record<string, string>>; detail?: string }>;

interface Refusals {
  readonly forGateway: (verdict: Refused) => Refusal;
  readonly forProxy: (verdict: Refused) => Refusal;
}

function createRefusals(realm: string | (() => string)): Refusals {
  const challenge = challengeOf(realm);
  // The same for missing and invalid credentials: it must not show which users exist.
  const unauthorized = (): Refusal => ({ slug: 'unauthorized', headers: challenge() });
  const busy: Refusal = {
    slug: 'auth-unavailable',
    headers: { 'Retry-After': '1' },
    detail: 'Too many credentials are being checked at once.',
  };
  const forGateway: Refusals['forGateway'] = (verdict) => {
    if (verdict.kind === 'busy') return busy;
    if (verdict.kind !== 'throttled') return unauthorized();
    return { slug: 'login-throttled', headers: { 'Retry-After': String(verdict.retryAfterS) } };
  };
  return {
    forGateway,
    forProxy(verdict) {
      const refusal = forGateway(verdict);
      if (verdict.kind !== 'throttled') return refusal;
      const { slug, headers } = refusal;
      return { ...unauthorized(), headers: { ...challenge(), ...headers }, detail: problems[slug].meaning };
    },
  };
}

function challengeOf(realm: string | (() => string)): () => Refusal['headers'] {
  if (typeof realm === 'function') return () => ({ 'WWW-Authenticate': formatChallenge(realm()) });
  const fixed = { 'WWW-Authenticate': formatChallenge(realm) };
  return () => fixed;
}

/** RFC 7617 section 2.1; the realm is a quoted-string (RFC 9110 section 5.6.4). */
function formatChallenge(realm: string): string {
  if (!/^[ -~]*$/.test(realm)) throw new TypeError(`the realm ${JSON.stringify(realm)} is not printable ASCII`);
  return `Basic realm="${realm.replace(/["\\]/g, '\\$&')}", charset="UTF-8"`;
}

function createCheck(authenticator: Authenticator, { forGateway }: Refusals, userHeader: string): AuthCheck {
  function decide(verdict: Verdict): AuthDecision {
    if (verdict.kind === 'user')
      return { outcome: 'allow', headers: { [userHeader]: verdict.name }, isAdmin: verdict.isAdmin };
    const { slug, headers } = forGateway(verdict);
    return { outcome: 'deny', status: problems[slug].status, headers, slug };
  }

  return function check({ headers: { authorization }, sender }) {
    const verdict = authenticator.authenticate(authorization, sender);
    return verdict instanceof Promise ? verdict.then(decide, checkFailed) : decide(verdict);
  };
}

function checkFailed(thrown: unknown): AuthDecision {
  return { outcome: 'error', reason: `the credentials could not be checked: ${String(thrown)}` };
}

function createApp(
  authenticator: Authenticator,
  { forGateway, forProxy }: Refusals,
  userHeader: string,
  logger: Logger,
): Koa {
  const app = new Koa();
  app.use(createProblemResponses({ logger }));
  app.use(async function authenticate(ctx) {
    const sender = () => requestContext(ctx).addresses.sender(ctx.req);
    const verdict = await authenticator.authenticate(ctx.req.headers.authorization, sender);
    if (!ctx.req.complete) await closeOverMissingBody(ctx);
    if (verdict.kind !== 'user') return refuse(ctx, verdict);
    requestContext(ctx).user = verdict.name;
    writeIdentity(ctx, userHeader, verdict.name);
  });
  return app;

  function refuse(ctx: Context, verdict: Refused): void {
    if (!writesItsOwn(ctx)) {
      const { slug, ...options } = forProxy(verdict);
      throw problem(slug, options);
    }
    const { slug, headers } = forGateway(verdict);
    ctx.status = problems[slug].status;
    ctx.set({ ...headers, 'Cache-Control': 'no-store', 'Preference-Applied': 'return=minimal' });
    ctx.body = '';
    ctx.remove('Content-Type');
  }
}

/** Whether the caller writes the body of a refusal itself, as a gateway of ours does (`return=minimal`, RFC 7240 section 4.2). */
function writesItsOwn({ req }: Context): boolean {
  return /(?:^|,)\s*return=minimal\s*(?:[,;]|$)/i.test(String(req.headers['prefer'] ?? ''));
}

/**
 * A proxy may send `Content-Length` without the body, as nginx does by default. The next request on that connection, of
 * another client, would be taken for the body: there must be none.
 */
async function closeOverMissingBody(ctx: Context): Promise<void> {
  // By then the parser has read a body that arrived with the headers.
  await setImmediate();
  if (!ctx.req.complete) ctx.set('Connection', 'close');
}

function writeIdentity(ctx: Context, userHeader: string, name: string): void {
  ctx.status = 200;
  ctx.set({ [userHeader]: name, 'Cache-Control': 'no-store' });
  ctx.body = '';
  // Koa sets text/plain for any string, also for an empty one.
  ctx.remove('Content-Type');
}

/** `x-travel-user` as `X-Travel-User`: Node sends a name as it is written. */
function canonicalCase(name: string): string {
  return name.toLowerCase().replace(/(?<![^-])[a-z]/g, (letter) => letter.toUpperCase());
}

/** Logs where throttled logins come from and how many were refused. Returns the verdict that it got. */
function createThrottleLog(logger: Logger, clock = () => performance.now()): (verdict: Verdict) => Verdict {
  let refused = 0;
  const mayLog = createOncePerMinute(clock);
  return (verdict) => {
    if (verdict.kind !== 'throttled') return verdict;
    refused += 1;
    if (!mayLog()) return verdict;
    const { network, isShared } = verdict.sender;
    logger.warn({ network, isShared, refused }, `logins are refused after too many failures${isShared ? remedy : ''}`);
    refused = 0;
    return verdict;
  };
}

const remedy = '; the address may be that of many clients: if a proxy is there, name it in TRUSTED_PROXIES';
