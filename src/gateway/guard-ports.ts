/** Checks that an embedding program passes what the records need, and guards against failures of its parts. */
import { inspect } from 'node:util';
import type { AuthCheck, AuthDecision, TokenCheck } from '#auth';
import type { AuthService, Configuration, RateLimitService } from '#config';
import { isMap } from '#foundation';
import { nodeHttp } from '#http';
import type { Decision, DescriptorStatus, Limiter } from '#ratelimit';

/**
 * The records of a configuration that the gateway applies. They are passed as a whole, because requests would pass
 * unchecked without one of the lists.
 */
export type GatewayRecords = Pick<Configuration, (typeof recordLists)[number]> &
  Partial<Pick<Configuration, 'upstreamFiles'>>;

interface Ports {
  readonly configuration: GatewayRecords;
  readonly resolve: unknown;
  readonly authChecks?: Readonly<Record<string, AuthCheck>>;
  readonly limiter?: Limiter | undefined;
}

/**
 * Wraps the auth checks and the limiter of the embedding program, so that late or malformed results count as failures.
 * Throws TypeError for lists that were passed one by one, and for a check or a limiter that no record uses.
 */
export function guardPorts({ configuration, resolve, authChecks = {}, limiter }: Ports) {
  requireRecords(configuration);
  if (typeof resolve !== 'function') throw new TypeError('`resolve` must be a function: use createResolve');
  const [rateLimitService] = configuration.rateLimitServices;
  if (limiter && rateLimitService === undefined)
    throw new TypeError('a `limiter` was passed, but the configuration has no RateLimitService that uses it');
  const checks = Object.entries(authChecks).map(([name, check]) => {
    const record = configuration.authServices.find((one) => one.name === name);
    if (record === undefined)
      throw new TypeError(`\`authChecks\` has a check "${name}", but no AuthService has that name`);
    return [name, guardAuthPort(check, record)] as const;
  });
  return {
    authChecks: Object.fromEntries(checks),
    limiter: limiter && rateLimitService && guardLimiter(limiter, rateLimitService),
  };
}

/** Without it, the gateway would reject all tokens. */
export function requireTokenCheck({ name }: AuthService, checks: Readonly<Record<string, TokenCheck>>): TokenCheck {
  const check = Object.hasOwn(checks, name) ? checks[name] : undefined;
  if (check === undefined)
    throw new TypeError(
      `AuthService ${name} has providers, but \`tokenChecks\` has no check for it: use createFrontdesk`,
    );
  return check;
}

const recordLists = ['mappings', 'authServices', 'rateLimitServices', 'versions', 'addresses'] as const;

function requireRecords(configuration: Partial<GatewayRecords> | undefined): void {
  const missing = recordLists.find((name) => !Array.isArray(configuration?.[name]));
  if (missing === undefined) return;
  throw new TypeError(
    `\`configuration\` has no list \`${missing}\`: pass the \`configuration\` that configurationFrom returns as a whole`,
  );
}

/** Throws TypeError if `port` is not a function. */
export function guardAuthPort(
  port: AuthCheck,
  { name, timeoutMs }: Pick<AuthService, 'name' | 'timeoutMs'>,
): AuthCheck {
  if (typeof port !== 'function')
    throw new TypeError(
      `the port of the auth service "${name}" is not a function: pass the \`check\` function of an auth service`,
    );
  return function check(request) {
    try {
      const result = port(request);
      if (!(result instanceof Promise)) return requireAuthDecision(result);
      return withTimeout(result, timeoutMs).then(requireAuthDecision).catch(errorDecision);
    } catch (thrown) {
      return errorDecision(thrown);
    }
  };
}

/** Throws TypeError if `limiter` has no function `shouldRateLimit`. */
export function guardLimiter(limiter: Limiter, { timeoutMs }: Pick<RateLimitService, 'timeoutMs'>): Limiter {
  if (typeof limiter.shouldRateLimit !== 'function')
    throw new TypeError('the limiter has no function `shouldRateLimit`: use createLimiter or connectRateLimit');
  return Object.freeze({
    ...(limiter.explain && { explain: limiter.explain.bind(limiter) }),
    shouldRateLimit(request) {
      const result = limiter.shouldRateLimit(request);
      if (!(result instanceof Promise)) return requireDecision(result);
      return withTimeout(result, timeoutMs).then(requireDecision);
    },
  } satisfies Limiter);
}

/** Rejects when the promise does not settle in time. */
async function withTimeout<T>(result: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    // Waits for one more turn of the event loop, so that a response that arrived while the process was busy counts.
    const end = () => setImmediate(reject, new Error(`it did not respond within ${timeoutMs} ms`));
    timer = setTimeout(end, timeoutMs);
  });
  return Promise.race([result, late]).finally(() => clearTimeout(timer));
}

function errorDecision(thrown: unknown): AuthDecision {
  return { outcome: 'error', reason: thrown instanceof Error ? thrown.message : inspect(thrown) };
}

/**
 * Also checks the headers: a request whose user header is missing or malformed would reach the service without a user.
 */
function requireAuthDecision(result: AuthDecision): AuthDecision {
  const { outcome, headers, clientHeaders = {}, status }: Record<string, unknown> = Object(result);
  const isAllowed = outcome === 'allow' && isMap(headers) && Object.values(headers).every(isFieldValue);
  const isDenied = outcome === 'deny' && areSendable(headers) && isFinalStatus(status);
  if ((isAllowed && areSendable(clientHeaders)) || isDenied || outcome === 'error') return result;
  throw new Error(`it returned ${shapeOf(result)}, which is not a valid decision`);
}

function areSendable(headers: unknown): boolean {
  return isMap(headers) && Object.values(headers).flat().every(isFieldValue);
}

function isFinalStatus(status: unknown): boolean {
  return Number.isInteger(status) && Number(status) >= 200 && Number(status) <= 599;
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

function requireDecision(result: Decision): Decision {
  const { overallCode, statuses }: Partial<Decision> = Object(result);
  const isCode = overallCode === 'OK' || overallCode === 'OVER_LIMIT';
  if (isCode && Array.isArray(statuses) && statuses.every(isStatus)) return result;
  throw new TypeError(`the limiter returned ${shapeOf(result)}, which is not a valid decision`);
}

function isStatus(status: unknown): boolean {
  const { limitRemaining, resetSeconds = 0 }: Partial<DescriptorStatus> = Object(status);
  return Number.isFinite(limitRemaining) && Number.isFinite(resetSeconds);
}

/** Describes a value by its keys or type, because the values themselves may be credentials. */
function shapeOf(value: unknown): string {
  if (isMap(value)) return `{ ${Object.keys(value).join(', ')} }`;
  if (Array.isArray(value)) return 'a list';
  return value === undefined || value === null ? String(value) : `a ${typeof value}`;
}
