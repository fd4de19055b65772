/** The stage that asks "who is this?" and lets nobody pass without an answer. */
import type { IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import type { AuthAnswer, AuthPort } from '#auth';
import type { AuthService } from '#config';
import { type Logger, logRequest, type ProblemSlug, problem, requestContext } from '#http';
import { clientIsGone } from '#proxy';
import { type AuthBody, readAuthBody } from './auth/body.ts';
import type { Facts } from './facts.ts';
import type { Identity } from './identity.ts';

/** Asks the auth service about a request; answers at once when it can, and never throws. `body`: where the record includes it. */
export type AskAuth = (ctx: Context, facts: Facts, body: AuthBody | undefined) => AuthAnswer | Promise<AuthAnswer>;

/** How often each answer was given since the start. */
export interface AuthCounts {
  allowed: number;
  denied: number;
  error: number;
}

/** True: go on. False: the client has been answered, or has left. Throws the problem of a refusal without a body of its own. */
export type Authenticate = (ctx: Context, facts: Facts) => boolean | Promise<boolean>;

export interface AuthenticationOptions {
  readonly record: Pick<AuthService, 'failureModeAllow' | 'statusOnError' | 'includeBody'>;
  readonly ask: AskAuth;
  readonly identity: Identity;
  /** Counted up; several auth services may share one. */
  readonly counts: AuthCounts;
  /** Hears of each request about which there was no answer. */
  readonly onSilence: () => void;
  readonly logger: Logger;
}

type PortRecord = Pick<AuthService, 'pathPrefix' | 'addAuthHeaders'>;

export function askInProcess(port: AuthPort, record: PortRecord): AskAuth {
  const put = createPortQuestion(record);
  return (ctx, { headers }) => port(put(ctx.req, headers));
}

/** The same question as across HTTP, but for what a service beside us can read itself: its headers are those of the request. Pure. */
export function createPortQuestion({ pathPrefix, addAuthHeaders }: PortRecord) {
  const added = Object.fromEntries(addAuthHeaders.map(({ name, value }) => [name.toLowerCase(), value]));
  const withAdded = (headers: Facts['headers']) => (addAuthHeaders.length === 0 ? headers : { ...headers, ...added });
  return ({ url = '/', method = 'GET' }: Pick<IncomingMessage, 'url' | 'method'>, headers: Facts['headers']) => ({
    method,
    url: pathPrefix + url,
    headers: withAdded(headers),
  });
}

export function createAuthentication(options: AuthenticationOptions): Authenticate {
  const { record, ask, identity, counts, onSilence, logger } = options;

  function settle(ctx: Context, answer: AuthAnswer): boolean {
    if (answer.outcome === 'allow') {
      counts.allowed += 1;
      identity.set(ctx.req.headers, answer.headers);
      requestContext(ctx).user = identity.userOf(ctx.req.headers);
      return true;
    }
    if (answer.outcome === 'deny') {
      counts.denied += 1;
      return refuse(ctx, answer);
    }
    counts.error += 1;
    onSilence();
    return settleError(ctx, answer.reason);
  }

  /** A client that leaves gets no answer; if it went on, leaving early would be a way past `failureModeAllow`. */
  const settleLater = (ctx: Context, answer: AuthAnswer) => !clientIsGone(ctx) && settle(ctx, answer);

  function settleError(ctx: Context, reason: string): boolean {
    const fields = { reason, allowed: record.failureModeAllow };
    logRequest(logger, 'warn', ctx, fields, 'the auth service gave no answer');
    if (record.failureModeAllow) return true;
    throw problem('auth-unavailable', {
      status: record.statusOnError,
      headers: { 'Retry-After': '1' },
      cause: reason,
    });
  }

  function authenticate(ctx: Context, facts: Facts): boolean | Promise<boolean> {
    const answer = ask(ctx, facts, undefined);
    return answer instanceof Promise ? answer.then((settled) => settleLater(ctx, settled)) : settle(ctx, answer);
  }

  const { includeBody } = record;
  if (includeBody === undefined) return authenticate;
  return async function authenticateWithBody(ctx, facts) {
    const body = await readAuthBody(ctx, includeBody);
    return body !== undefined && settleLater(ctx, await ask(ctx, facts, body));
  };
}

/** A refusal with a body goes to the client as it is; without one the client gets the error body of its status. */
function refuse(ctx: Context, { status, headers, body }: Extract<AuthAnswer, { outcome: 'deny' }>): false {
  if (body === undefined) throw problem(slugOfStatus[status] ?? 'access-denied', { status, headers });
  for (const [name, value] of Object.entries(headers)) ctx.set(name, typeof value === 'string' ? value : [...value]);
  ctx.set('Cache-Control', 'no-store');
  ctx.status = status;
  ctx.body = Buffer.from(body);
  if (headers['content-type'] === undefined) ctx.remove('Content-Type');
  return false;
}

const slugOfStatus: Readonly<Record<number, ProblemSlug>> = {
  401: 'unauthorized',
  403: 'access-denied',
  429: 'too-many-requests',
  503: 'auth-unavailable',
};
