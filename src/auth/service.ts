/** The auth service: `check` for a gateway in the same process, and an HTTP `app` for any other proxy. */
import type { IncomingHttpHeaders } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import Koa, { type Context } from 'koa';
import { createOncePerMinute, type Logger, silentLogger } from '#foundation';
import {
  canonicalCase,
  createProblemResponses,
  encodeHeader,
  keyNameHeader,
  nodeHttp,
  type ProblemSlug,
  problem,
  problems,
  rejectNomination,
  requestContext,
  type Sender,
  userHeader,
} from '#http';
import type { Authenticator } from './authenticator.ts';
import { basicChallenge, bearerChallenge } from './challenges.ts';
import { createCheckOverGrpc } from './over-grpc.ts';
import type { ClaimOf, TokenVerdict, TokenVerifier } from './token-verifier.ts';
import type { Verdict, VerifiedUser } from './verdict.ts';

/** The parts of a request that an auth service sees. */
export interface AuthRequest {
  readonly method: string;
  /** The original path and query. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** Returns the sender, for the throttling of logins. @default one sender for all requests */
  readonly sender?: () => Sender;
}

/**
 * The decision about a request:
 *
 * - `allow`: the request may pass. `headers` are set on the routed request, and `clientHeaders` on the response to the
 *   client, both with lower-case names and only if the record lists them. `isAdmin` reflects a role in users.yaml, so only
 *   the auth service of this process reports it. `claimOf` reads the claims of a token, and is missing without one.
 * - `deny`: the response to send to the client. Without a body, the gateway writes the error body of `status`.
 * - `error`: the auth service could not decide. `reason` is for the log and is never sent to the client. `isProvoked`
 *   means that the client may have caused it although the service is healthy, so the request never passes.
 */
export type AuthDecision =
  | {
      readonly outcome: 'allow';
      readonly headers: Readonly<Record<string, string>>;
      readonly clientHeaders?: Readonly<Record<string, string | readonly string[]>>;
      readonly isAdmin?: boolean;
      readonly claimOf?: ClaimOf;
    }
  | {
      readonly outcome: 'deny';
      readonly status: number;
      readonly headers: Readonly<Record<string, string | readonly string[]>>;
      readonly body?: Uint8Array;
      /** The problem to render if there is no body. @default the problem of `status` */
      readonly slug?: ProblemSlug;
    }
  | { readonly outcome: 'error'; readonly reason: string; readonly isProvoked?: boolean };

/**
 * Asks an auth service, in this process or over HTTP. Returns the decision synchronously when no I/O is needed. Never
 * throws.
 */
export type AuthCheck = (request: AuthRequest) => AuthDecision | Promise<AuthDecision>;

/** The part of an authenticator that tells why a login failed. `verdictOfKey` is only needed where keys are accepted. */
export type Verdicts = Pick<Authenticator, 'verdictOf'> & Partial<Pick<Authenticator, 'verdictOfKey'>>;

export interface AuthServiceOptions {
  readonly authenticator: Verdicts;
  /**
   * The realm, in printable ASCII, which browsers may show when they prompt for credentials. A function is called for
   * every challenge. @default 'api'
   */
  readonly realm?: string | (() => string);
  /**
   * The header that passes the user's name to services. A function returns several in lower case, and is called for
   * every user. @default 'x-travel-user'
   */
  readonly userHeader?: string | (() => readonly string[]);
  /**
   * The header in which clients may send API keys. A function returns several in lower case, and is called for every
   * request. @default none are accepted
   */
  readonly keyHeader?: string | (() => readonly string[]);
  /** Returns what checks the tokens that other proxies send to `app`. @default none are accepted */
  readonly tokens?: () => TokenVerifier | undefined;
  readonly logger?: Logger;
}

export interface AuthService {
  /**
   * Checks requests for a gateway in this process. Denies with 401 for invalid or missing credentials, 429 for too many
   * failed logins, and 503 for too many concurrent checks, all without a body.
   */
  readonly check: AuthCheck;
  /**
   * Returns a check with a different realm, which names the user in the given headers (in lower case). `acceptsTokens`:
   * whether the gateway also accepts tokens, which it checks itself, so that denials say so. `keyHeader`: where clients
   * may send API keys (in lower case).
   */
  readonly checkFor: (
    realm: string,
    userHeaders: readonly string[],
    acceptsTokens?: boolean,
    keyHeader?: string | undefined,
  ) => AuthCheck;
  /**
   * Serves other proxies. It looks only at the credentials, whatever the path and method. It responds with 200, the
   * identity headers and an empty body, or with 401 or 503 and the error body. After too many failed logins it
   * responds with 401 and `Retry-After`, because a proxy may treat any other status as a failure of the service. With
   * `Prefer: return=minimal` it responds like `check`, without a body. Over HTTP/2 it also serves Envoy's ext_authz over
   * gRPC, with the same responses.
   */
  readonly app: Koa;
}

export const realmDefault = 'api';

/** @throws {TypeError} for a realm or header name that is invalid in HTTP, and for an invalid authenticator. */
export function createAuthService({
  authenticator,
  realm = realmDefault,
  userHeader: header = userHeader,
  keyHeader = () => [],
  tokens = () => undefined,
  logger = silentLogger,
}: AuthServiceOptions): AuthService {
  const userHeaders = namesOf(header);
  const keyHeaders = namesOf(keyHeader);
  requireAuthenticator(authenticator);
  if (typeof keyHeader === 'string' && authenticator.verdictOfKey === undefined)
    throw new TypeError('the authenticator has no function `verdictOfKey`: use createAuthenticator');
  const refusals = createRefusals(realm, () => tokens() !== undefined);
  const logUnchecked = createUncheckedLog(logger);
  const watched = (keyNames: HeaderNames): VerdictOf => {
    const verdictOf = createVerdictOf(authenticator, keyNames);
    return (headers, sender) => {
      const verdict = verdictOf(headers, sender);
      return verdict instanceof Promise ? verdict.then(logUnchecked) : logUnchecked(verdict);
    };
  };
  return Object.freeze({
    check: createCheck(watched(keyHeaders), refusals, userHeaders),
    checkFor(other: string, names: readonly string[], acceptsTokens = false, keyName?: string) {
      const keyNames = keyName === undefined ? [] : [keyName];
      const verdictOf = watched(() => keyNames);
      return createCheck(
        verdictOf,
        createRefusals(other, () => acceptsTokens),
        () => names,
      );
    },
    app: createApp(watched(keyHeaders), { refusals, userHeaders, tokens, realm, logger }),
  });
}

type VerdictOf = (headers: IncomingHttpHeaders, sender?: () => Sender) => Verdict | Promise<Verdict>;

/** The first kind of credentials that a request has decides, whatever else it has: a key, then a password. */
function createVerdictOf(authenticator: Verdicts, keyHeaders: HeaderNames): VerdictOf {
  return function verdictOf(headers, sender) {
    const key = keyIn(headers, keyHeaders());
    const verdict = key === undefined ? undefined : authenticator.verdictOfKey?.(key, sender);
    return verdict ?? authenticator.verdictOf(headers.authorization, sender);
  };
}

/** Returns the API key of a request. `names`: the headers in which it may be, in lower case. */
export function keyIn(headers: IncomingHttpHeaders, names: readonly string[]): string | undefined {
  for (const name of names) {
    const key = headers[name];
    if (key !== undefined) return typeof key === 'string' ? key : key.join();
  }
  return undefined;
}

export function requireAuthenticator(authenticator: Verdicts): void {
  if (typeof authenticator?.verdictOf !== 'function')
    throw new TypeError('the authenticator has no function `verdictOf`: use createAuthenticator');
}

type HeaderNames = () => readonly string[];

function namesOf(header: string | HeaderNames): HeaderNames {
  if (typeof header === 'function') return header;
  nodeHttp.validateHeaderName(header);
  const fixed = [header.toLowerCase()];
  return () => fixed;
}

type Refused = Exclude<Verdict, { readonly kind: 'user' }>;
type Refusal = Readonly<{ slug: ProblemSlug; headers: RefusalHeaders; detail?: string }>;
type RefusalHeaders = Readonly<Record<string, string | readonly string[]>>;

interface Refusals {
  readonly forGateway: (verdict: Refused) => Refusal;
  readonly forProxy: (verdict: Refused) => Refusal;
}

type Realm = NonNullable<AuthServiceOptions['realm']>;

export function createRefusals(realm: Realm, acceptsTokens = () => false): Refusals {
  const challenge = challengeOf(realm, acceptsTokens);
  // Missing and invalid credentials get the same response, so that it does not reveal which users exist.
  const unauthorized = (): Refusal => ({ slug: 'unauthorized', headers: challenge() });
  const busyFor = String(problems['auth-overloaded'].retryAfterSeconds);
  const busy: Refusal = { slug: 'auth-overloaded', headers: { 'Retry-After': busyFor } };
  const forGateway: Refusals['forGateway'] = (verdict) => {
    if (verdict.kind === 'busy') return busy;
    if (verdict.kind !== 'throttled') return unauthorized();
    return { slug: 'login-throttled', headers: { 'Retry-After': String(verdict.retryAfterS) } };
  };
  return {
    forGateway,
    forProxy(verdict) {
      const refusal = forGateway(verdict);
      if (verdict.kind !== 'throttled' && verdict.kind !== 'busy') return refusal;
      const explained = { ...refusal, detail: problems[refusal.slug].meaning };
      if (verdict.kind === 'busy') return explained;
      return { ...explained, ...unauthorized(), headers: { ...challenge(), ...refusal.headers } };
    },
  };
}

function challengeOf(realm: Realm, acceptsTokens: () => boolean): () => RefusalHeaders {
  const fixed = typeof realm === 'string' ? challengesFor(realm) : undefined;
  return () => {
    const { passwords, both } = fixed ?? challengesFor(realmName(realm));
    return acceptsTokens() ? both : passwords;
  };
}

function challengesFor(realm: string) {
  const basic = basicChallenge(realm);
  return {
    passwords: { 'WWW-Authenticate': basic },
    both: { 'WWW-Authenticate': [bearerChallenge(realm), basic] },
  };
}

function realmName(realm: Realm): string {
  return typeof realm === 'function' ? realm() : realm;
}

/** Returns the decision for the gateway of a verdict. */
export function createDecide({ forGateway }: Refusals, userHeaders: HeaderNames): (verdict: Verdict) => AuthDecision {
  return function decide(verdict) {
    if (verdict.kind === 'user')
      return { outcome: 'allow', headers: named(userHeaders(), verdict), isAdmin: verdict.isAdmin };
    const { slug, headers } = forGateway(verdict);
    return { outcome: 'deny', status: problems[slug].status, headers, slug };
  };
}

function createCheck(verdictOf: VerdictOf, refusals: Refusals, userHeaders: HeaderNames): AuthCheck {
  const decide = createDecide(refusals, userHeaders);
  return function check({ headers, sender }) {
    const verdict = verdictOf(headers, sender);
    return verdict instanceof Promise ? verdict.then(decide, checkFailed) : decide(verdict);
  };
}

/** Returns the user's name under each header, and the name of the key if one was sent. */
function named(headers: readonly string[], { name, key }: VerifiedUser): Record<string, string> {
  const found: Record<string, string> = {};
  for (const header of headers) found[header] = encodeHeader(name);
  if (key !== undefined) found[keyNameHeader] = key;
  return found;
}

function checkFailed(thrown: unknown): AuthDecision {
  return { outcome: 'error', reason: `the credentials could not be checked: ${String(thrown)}` };
}

/** The decision about a request with a token. The user headers are in lower case. */
export function tokenDecision(verdict: TokenVerdict, realm: string, userHeaders: readonly string[]): AuthDecision {
  switch (verdict.kind) {
    case 'token-user': {
      const headers: Record<string, string> = { ...verdict.headers };
      for (const name of userHeaders) headers[name] = encodeHeader(verdict.name);
      return { outcome: 'allow', headers, claimOf: verdict.claimOf };
    }
    case 'token-refused': {
      const error = verdict.isExpired ? 'expired' : 'invalid';
      const headers = { 'WWW-Authenticate': [bearerChallenge(realm, error), basicChallenge(realm)] };
      return { outcome: 'deny', status: problems.unauthorized.status, headers, slug: 'unauthorized' };
    }
    case 'token-unchecked':
      return { outcome: 'error', reason: verdict.reason };
  }
}

interface AppParts {
  readonly refusals: Refusals;
  readonly userHeaders: HeaderNames;
  readonly tokens: () => TokenVerifier | undefined;
  readonly realm: Realm;
  readonly logger: Logger;
}

function createApp(verdictOf: VerdictOf, parts: AppParts): Koa {
  const { refusals, userHeaders, tokens, realm, logger } = parts;
  const app = new Koa();
  app.use(createCheckOverGrpc(() => [...userHeaders(), keyNameHeader, ...(tokens()?.claimHeaders ?? [])]));
  // The client of a proxy chooses the content type, and to the proxy a 200 is permission.
  app.use(createProblemResponses({ logger, refusesInGrpc: false }));
  app.use(async function authenticate(ctx) {
    rejectNomination(requestContext(ctx).nominated);
    const { headers, url = '/' } = ctx.req;
    const token = await tokens()?.verdictOf({ headers, url });
    if (token !== undefined) return settleToken(ctx, tokenDecision(token, realmName(realm), userHeaders()), token);
    const sender = () => requestContext(ctx).addresses.sender(ctx.req);
    const verdict = await verdictOf(headers, sender);
    if (!ctx.req.complete) await closeOverMissingBody(ctx);
    if (verdict.kind !== 'user') return refuse(ctx, refusals.forGateway(verdict), refusals.forProxy(verdict));
    requestContext(ctx).user = verdict.name;
    requestContext(ctx).apiKey = verdict.key;
    writeIdentity(ctx, named(userHeaders(), verdict));
  });
  return app;
}

/** Reports whether the caller writes error bodies itself, like our gateway (`return=minimal`, RFC 7240 section 4.2). */
function prefersMinimal({ req }: Context): boolean {
  return /(?:^|,)\s*return=minimal\s*(?:[,;]|$)/i.test(String(req.headers['prefer'] ?? ''));
}

/**
 * Closes the connection if the announced body has not arrived. A proxy may send `Content-Length` without the body, as
 * nginx does by default, and the next request on that connection would be mistaken for the body.
 */
async function closeOverMissingBody(ctx: Context): Promise<void> {
  // Let the parser read a body that arrived together with the headers.
  await setImmediate();
  if (!ctx.req.complete) ctx.set('Connection', 'close');
}

/** Responds with the decision about a token. */
async function settleToken(ctx: Context, decision: AuthDecision, verdict: TokenVerdict): Promise<void> {
  if (!ctx.req.complete) await closeOverMissingBody(ctx);
  if (decision.outcome === 'error') throw problem('auth-unavailable', { cause: decision.reason });
  if (decision.outcome === 'deny') {
    const refusal: Refusal = { slug: 'unauthorized', headers: decision.headers };
    return refuse(ctx, refusal, refusal);
  }
  if (verdict.kind === 'token-user') requestContext(ctx).user = verdict.name;
  writeIdentity(ctx, decision.headers);
}

function refuse(ctx: Context, refusal: Refusal, { slug, ...options }: Refusal): void {
  if (!prefersMinimal(ctx)) throw problem(slug, options);
  ctx.body = null;
  ctx.status = problems[refusal.slug].status;
  ctx.set({ 'Cache-Control': 'no-store', 'Preference-Applied': 'return=minimal' });
  for (const [name, value] of Object.entries(refusal.headers)) ctx.set(name, [value].flat());
}

function writeIdentity(ctx: Context, headers: Readonly<Record<string, string>>): void {
  ctx.body = null;
  ctx.status = 200;
  for (const [name, value] of Object.entries(headers)) ctx.set(canonicalCase(name), value);
  ctx.set('Cache-Control', 'no-store');
}

/**
 * Logs that logins were rejected without a check, with their number, at most once a minute for each reason. Returns the
 * verdict unchanged.
 */
export function createUncheckedLog(logger: Logger): (verdict: Verdict) => Verdict {
  const warnThrottled = createCountedWarning(logger);
  const warnBusy = createCountedWarning(logger);
  return (verdict) => {
    if (verdict.kind === 'busy')
      warnBusy(() => [{}, 'logins are rejected because too many passwords are being checked']);
    if (verdict.kind === 'throttled') {
      const { network, isShared } = verdict.sender;
      warnThrottled(() => [
        { network, isShared },
        'logins are rejected after too many failures: if the network is a proxy, add it to TRUSTED_PROXIES',
      ]);
    }
    return verdict;
  };
}

/** Logs at most once a minute. `refused`: the number of calls since the last line. */
function createCountedWarning(logger: Logger): (lineOf: () => [fields: object, message: string]) => void {
  const mayLog = createOncePerMinute();
  let refused = 0;
  return (lineOf) => {
    refused += 1;
    if (!mayLog()) return;
    const [fields, message] = lineOf();
    logger.warn({ ...fields, refused }, message);
    refused = 0;
  };
}
