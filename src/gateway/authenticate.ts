/** The stage that asks "who is this?" and lets nobody pass without an answer. */
import type { Context } from 'koa';
import type { AuthAnswer, AuthPort } from '#auth';
import type { AuthService } from '#config';
import { exchangeOf, type Logger, type ProblemSlug, problem } from '#http';
import { hasLeft } from './deadline.ts';
import type { Identity } from './identity.ts';

/** Asks the auth service about a request; answers at once when it can, and never throws. */
export type AskAuth = (ctx: Context) => AuthAnswer | Promise<AuthAnswer>;

/** How often each answer was given since the start. */
export interface AuthCounts {
  allowed: number;
  denied: number;
  error: number;
}

export interface Authentication {
  /** True: go on. False: the client has been answered, or has left. Throws the problem of a refusal without a body of its own. */
  readonly authenticate: (ctx: Context) => boolean | Promise<boolean>;
  readonly counts: Readonly<AuthCounts>;
}

export interface AuthenticationOptions {
  readonly record: Pick<AuthService, 'failureModeAllow' | 'statusOnError'>;
  readonly ask: AskAuth;
  readonly identity: Identity;
  readonly logger: Logger;
}

export function askInProcess(port: AuthPort): AskAuth {
  return (ctx) => port({ method: ctx.method, url: ctx.url, headers: ctx.req.headers });
}

export function createAuthentication({ record, ask, identity, logger }: AuthenticationOptions): Authentication {
  const counts: AuthCounts = { allowed: 0, denied: 0, error: 0 };

  function settle(ctx: Context, answer: AuthAnswer): boolean {
    if (answer.outcome === 'allow') {
      counts.allowed += 1;
      identity.set(ctx.req.headers, answer.headers);
      exchangeOf(ctx).user = identity.userOf(ctx.req.headers);
      return true;
    }
    if (answer.outcome === 'deny') {
      counts.denied += 1;
      return refuse(ctx, answer);
    }
    counts.error += 1;
    return settleError(ctx, answer.reason);
  }

  /** A client that leaves gets no answer; if it went on, leaving early would be a way past `failureModeAllow`. */
  const settleLater = (ctx: Context, answer: AuthAnswer) => !hasLeft(ctx) && settle(ctx, answer);

  function settleError(ctx: Context, reason: string): boolean {
    const { requestId } = exchangeOf(ctx);
    logger.warn({ requestId, reason, allowed: record.failureModeAllow }, 'the auth service gave no answer');
    if (record.failureModeAllow) return true;
    throw problem('auth-unavailable', {
      status: record.statusOnError,
      headers: { 'Retry-After': '1' },
      cause: reason,
    });
  }

  return Object.freeze({
    counts,
    authenticate(ctx: Context) {
      const answer = ask(ctx);
      return answer instanceof Promise ? answer.then((settled) => settleLater(ctx, settled)) : settle(ctx, answer);
    },
  });
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
