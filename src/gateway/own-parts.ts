/** Holds the auth services and the limiter that a program hands in to what records promise: a late, broken or odd answer is none. */
import { inspect } from 'node:util';
import type { AuthCheck, AuthDecision } from '#auth';
import type { AuthService, RateLimitService } from '#config';
import { nodeHttp } from '#http';
import type { Decision, DescriptorStatus, Limiter } from '#ratelimit';

/** Throws TypeError for what is no `check` of an auth service. */
export function boundAuth(port: AuthCheck, { name, timeoutMs }: Pick<AuthService, 'name' | 'timeoutMs'>): AuthCheck {
  if (typeof port !== 'function')
    throw new TypeError(`the port of the auth service "${name}" is no function: hand in the \`check\` of a service`);
  return function check(request) {
    try {
      const answer = port(request);
      if (!(answer instanceof Promise)) return requireAuthDecision(answer);
      return inTime(answer, timeoutMs).then(requireAuthDecision).catch(failed);
    } catch (thrown) {
      return failed(thrown);
    }
  };
}

/** Throws TypeError for what is no limiter. */
export function boundLimiter(limiter: Limiter, { timeoutMs }: Pick<RateLimitService, 'timeoutMs'>): Limiter {
  if (typeof limiter.shouldRateLimit !== 'function')
    throw new TypeError('the limiter has no function `shouldRateLimit`: createLimiter and connectRateLimit make one');
  return Object.freeze({
    ...(limiter.explain && { explain: limiter.explain.bind(limiter) }),
    shouldRateLimit(request) {
      const answer = limiter.shouldRateLimit(request);
      if (!(answer instanceof Promise)) return requireDecision(answer);
      return inTime(answer, timeoutMs).then(requireDecision);
    },
  } satisfies Limiter);
}

/** Rejects when the answer has not come in time. */
async function inTime<T>(answer: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    // One turn later: what arrived while the process was busy still counts.
    const end = () => setImmediate(reject, new Error(`it did not answer within ${timeoutMs} ms`));
    timer = setTimeout(end, timeoutMs);
  });
  return Promise.race([answer, late]).finally(() => clearTimeout(timer));
}

function failed(thrown: unknown): AuthDecision {
  return { outcome: 'error', reason: thrown instanceof Error ? thrown.message : inspect(thrown) };
}

/** A user without a name, or with one that HTTP cannot carry, would reach the service without a user. */
function requireAuthDecision(answer: AuthDecision): AuthDecision {
  const { outcome, headers, status }: Record<string, unknown> = Object(answer);
  const isAllowed = outcome === 'allow' && isMap(headers) && Object.values(headers).every(isFieldValue);
  const isDenied = outcome === 'deny' && isMap(headers) && Number.isInteger(status);
  if (isAllowed || isDenied || outcome === 'error') return answer;
  throw new Error(`it answered ${shapeOf(answer)}, which is no decision that HTTP can carry`);
}

function isFieldValue(value: unknown): boolean {
  if (typeof value !== 'string') return false;
  try {
    nodeHttp.validateHeaderValue('x', value);
    return true;
  } catch {
    return false;
  }
}

function requireDecision(answer: Decision): Decision {
  const { overallCode, statuses }: Partial<Decision> = Object(answer);
  const isCode = overallCode === 'OK' || overallCode === 'OVER_LIMIT';
  if (isCode && Array.isArray(statuses) && statuses.every(isStatus)) return answer;
  throw new TypeError(`the limiter answered ${shapeOf(answer)}, which is no decision`);
}

function isStatus(status: unknown): boolean {
  const { limitRemaining, resetSeconds = 0 }: Partial<DescriptorStatus> = Object(status);
  return Number.isFinite(limitRemaining) && Number.isFinite(resetSeconds);
}

/** Without its values, which may be credentials. */
function shapeOf(value: unknown): string {
  if (isMap(value)) return `{ ${Object.keys(value).join(', ')} }`;
  return value === undefined || value === null ? String(value) : `a ${typeof value}`;
}

function isMap(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
