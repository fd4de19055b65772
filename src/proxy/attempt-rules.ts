/** When a call makes another attempt: a table of rules, and the retry policy of a mapping, to which two of them refer. */
import type { GrpcRetryCondition, RetryPolicy } from '#config';
import { grpcStatus } from '#http';
import type { FailureStage } from './attempt.ts';
import { failureOf, type RetryClass } from './failures.ts';
import { statusOfFailure } from './grpc/status.ts';
import type { RequestBody } from './request-body.ts';

/** A row of the table. It allows another attempt if all of its conditions hold. */
export interface AttemptRule {
  readonly name: 'next-address' | 'start-over' | 'refused' | 'new-connection' | 'fail-over' | 'policy';
  /** How the last attempt ended. */
  readonly after: readonly Ending[];
  /** What its failure was. `policy`: one that the retry policy of the mapping covers. */
  readonly failures: readonly RetryClass[] | 'any' | 'policy';
  readonly methods: 'any' | 'idempotent';
  /** `unread`: it is in memory, or no attempt has started to read it. `whole`: it is in memory. */
  readonly body: 'unread' | 'whole';
  /** Not if one of these rules has been followed in the same call. */
  readonly unlessFollowed: readonly AttemptRule['name'][];
  /** How often a call may follow it. @default as often as the other conditions hold */
  readonly timesMax?: number;
  /**
   * Where the next attempt is made. Only the last one waits, and counts towards the limits of the retry policy:
   * - `untried`: at an address that has not been tried.
   * - `tried`: at any address, if at least two have been tried.
   * - `fresh`: at any address, preferably an untried one, on a new connection.
   * - `later`: after a pause, at any address, preferably an untried one.
   */
  readonly where: 'untried' | 'tried' | 'fresh' | 'later';
}

/**
 * How an attempt ended that has no response for the client: at a stage of its failure, or
 * - `timed-out`: at its own time-out. It may still start to read the body.
 * - `retriable-status`: with a response whose status the retry policy covers.
 */
export type Ending = FailureStage | 'timed-out' | 'retriable-status';

/** A restarting service refuses connections. Nothing was written, so any request can go elsewhere. */
const nextAddress: AttemptRule = {
  name: 'next-address',
  after: ['unsent'],
  failures: ['connect', 'reset', 'timeout'],
  methods: 'any',
  body: 'unread',
  unlessFollowed: [],
  where: 'untried',
};

/** An address may have come up while the others were tried. */
const startOver: AttemptRule = {
  name: 'start-over',
  after: ['unsent'],
  failures: ['connect', 'reset', 'timeout'],
  methods: 'any',
  body: 'unread',
  unlessFollowed: ['start-over'],
  where: 'tried',
};

/**
 * A service that restarts, or that ends a session, names the requests that it has not processed (HTTP/2). Under load,
 * one that ends each session after some thousand requests can refuse the same request again and again.
 */
const refused: AttemptRule = {
  name: 'refused',
  after: ['unsent'],
  failures: ['refused'],
  methods: 'any',
  body: 'unread',
  unlessFollowed: [],
  timesMax: 5,
  where: 'fresh',
};

/** The rules for each kind of request. The first rule that allows another attempt is followed. */
export const attemptRules = {
  /** Requests of clients. */
  idempotent: [
    nextAddress,
    startOver,
    refused,
    // The service may have closed an idle connection just as it was reused.
    {
      name: 'new-connection',
      after: ['keep-alive-race'],
      failures: 'any',
      methods: 'idempotent',
      body: 'unread',
      unlessFollowed: ['new-connection'],
      where: 'fresh',
    },
    // A restarting service closes its connections.
    {
      name: 'fail-over',
      after: ['sent'],
      failures: ['reset'],
      methods: 'idempotent',
      body: 'unread',
      unlessFollowed: ['fail-over', 'new-connection'],
      where: 'untried',
    },
    {
      name: 'policy',
      after: ['unsent', 'keep-alive-race', 'sent', 'responding', 'retriable-status'],
      failures: 'policy',
      methods: 'idempotent',
      body: 'unread',
      unlessFollowed: [],
      where: 'later',
    },
    {
      name: 'policy',
      after: ['timed-out'],
      failures: 'policy',
      methods: 'idempotent',
      body: 'whole',
      unlessFollowed: [],
      where: 'later',
    },
  ],
  /** Requests that the gateway makes itself and that are safe to repeat, whatever their method. */
  failover: [
    nextAddress,
    startOver,
    refused,
    {
      name: 'new-connection',
      after: ['keep-alive-race'],
      failures: 'any',
      methods: 'any',
      body: 'unread',
      unlessFollowed: ['next-address', 'start-over', 'new-connection', 'fail-over'],
      where: 'fresh',
    },
    {
      name: 'fail-over',
      after: ['keep-alive-race', 'sent', 'responding'],
      failures: 'any',
      methods: 'any',
      body: 'unread',
      unlessFollowed: ['fail-over', 'new-connection'],
      where: 'untried',
    },
  ],
  /** Calls of gRPC. All of them are POST, so the retry policy says what can safely be sent twice. */
  grpc: [
    nextAddress,
    startOver,
    refused,
    {
      name: 'policy',
      after: ['unsent', 'keep-alive-race', 'sent', 'responding', 'timed-out', 'retriable-status'],
      failures: 'policy',
      methods: 'any',
      body: 'unread',
      unlessFollowed: [],
      where: 'later',
    },
  ],
  never: [],
} as const satisfies Record<string, readonly AttemptRule[]>;

export type Repeat = keyof typeof attemptRules;

/** A call after one of its attempts. */
export interface EndedAttempt {
  readonly ending: Ending;
  /** The error, or the status of the response. */
  readonly reason: unknown;
  readonly method: string;
  readonly body: RequestBody | undefined;
  readonly policy: RetryRules | undefined;
  /** The rules that the call has followed so far. */
  readonly followed: readonly AttemptRule['name'][];
}

/** Returns the rules that allow another attempt. Whether its address suits them remains to be checked. */
export function rulesAllowing(repeat: Repeat, ended: EndedAttempt): readonly AttemptRule[] {
  const rules: readonly AttemptRule[] = attemptRules[repeat];
  return rules.filter(
    (rule) =>
      rule.after.includes(ended.ending) &&
      coversFailure(rule, ended) &&
      coversMethod(rule, ended.method) &&
      coversBody(rule, ended.body) &&
      !rule.unlessFollowed.some((name) => ended.followed.includes(name)) &&
      isWithinTimes(rule, ended.followed),
  );
}

function isWithinTimes({ name, timesMax }: AttemptRule, followed: EndedAttempt['followed']): boolean {
  return timesMax === undefined || followed.filter((one) => one === name).length < timesMax;
}

function coversFailure({ failures }: AttemptRule, { ending, reason, policy }: EndedAttempt): boolean {
  if (failures === 'any') return true;
  if (failures !== 'policy') return failures.includes(failureOf(reason).retry);
  return policy !== undefined && (ending === 'retriable-status' || policy.isRetriableFailure(reason));
}

function coversMethod({ methods }: AttemptRule, method: string): boolean {
  return methods === 'any' || idempotent.has(method);
}

/** Methods that can safely be sent twice (RFC 9110 section 9.2.2). */
const idempotent = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE']);

function coversBody(rule: AttemptRule, body: RequestBody | undefined): boolean {
  if (body === undefined) return true;
  return rule.body === 'whole' ? body.isWhole() : body.isRepeatable();
}

/** `tried`: the origins of all attempts so far. */
export function coversAddress({ where }: AttemptRule, origin: string, tried: readonly string[]): boolean {
  if (where === 'untried') return !tried.includes(origin);
  return where !== 'tried' || new Set(tried).size > 1;
}

export interface RetryRules {
  /** The maximum number of attempts after the first. */
  readonly retriesMax: number;
  /** Milliseconds to the response headers of one attempt. Undefined if only the time-out of the whole call applies. */
  readonly perTryTimeoutMs: number | undefined;
  readonly isRetriableMethod: (method: string) => boolean;
  readonly isRetriableStatus: (status: number) => boolean;
  readonly isRetriableGrpcStatus: (code: number) => boolean;
  /** Applies to an attempt that failed before the response headers. */
  readonly isRetriableFailure: (cause: unknown) => boolean;
}

/**
 * Supports Envoy's conditions. `refused-stream` does not exist in HTTP/1.1. An attempt without a response counts as the
 * 5xx that the client would receive.
 */
export function createRetryRules(policy: RetryPolicy | undefined): RetryRules {
  const on = new Set<string>(policy?.retryOn);
  const codes = new Set(on.has('retriable-status-codes') ? policy?.statusCodes : []);
  if (on.has('gateway-error')) for (const status of [502, 503, 504]) codes.add(status);
  if (on.has('retriable-4xx')) codes.add(409);
  const grpcCodes = new Set(Object.entries(grpcConditions).flatMap(([name, code]) => (on.has(name) ? [code] : [])));
  // Each of these conditions covers any failure before a response.
  const coversNoResponse = on.has('5xx') || on.has('gateway-error') || on.has('reset');
  return Object.freeze({
    retriesMax: policy?.numRetries ?? 0,
    perTryTimeoutMs: policy?.perTryTimeoutMs,
    isRetriableMethod: (method: string) =>
      attemptRules.idempotent.some((rule) => rule.name === 'policy' && coversMethod(rule, method)),
    isRetriableStatus: (status: number) => codes.has(status) || (status >= 500 && on.has('5xx')),
    isRetriableGrpcStatus: (code: number) => grpcCodes.has(code),
    isRetriableFailure(cause: unknown) {
      const { retry } = failureOf(cause);
      if (retry === 'never') return false;
      if (grpcCodes.size > 0 && grpcCodes.has(statusOfFailure(cause))) return true;
      if (retry === 'connect') return coversNoResponse || on.has('connect-failure');
      if (retry === 'refused') return coversNoResponse || on.has('refused-stream');
      return coversNoResponse;
    },
  });
}

/** The conditions that are statuses of gRPC. */
const grpcConditions: Readonly<Record<GrpcRetryCondition, number>> = {
  cancelled: grpcStatus.CANCELLED,
  'deadline-exceeded': grpcStatus.DEADLINE_EXCEEDED,
  internal: grpcStatus.INTERNAL,
  'resource-exhausted': grpcStatus.RESOURCE_EXHAUSTED,
  unavailable: grpcStatus.UNAVAILABLE,
};

const backOffBaseMs = 25;
const backOffMsMax = 250;

/** Returns a random pause before retry 1, 2, …: up to 25 ms, 75 ms, 175 ms, then 250 ms, as in Envoy. */
export function backOffMs(retry: number, random: () => number): number {
  return random() * Math.min((2 ** retry - 1) * backOffBaseMs, backOffMsMax);
}

/** The longest `Retry-After` that we wait for. A response with a longer one is forwarded to the client. */
export const retryAfterMsMax = 10_000;

/** Parses a `Retry-After` in seconds to milliseconds (RFC 9110 section 10.2.3). Ignores dates: clocks differ. */
export function retryAfterMs(value: string | undefined): number | undefined {
  return value !== undefined && /^\d{1,6}$/.test(value) ? Number(value) * 1000 : undefined;
}

/**
 * Parses `grpc-retry-pushback-ms`, with which a service says when to call again (grpc/proposal, A6). Infinite for anything
 * but a number of milliseconds, with which it asks for no further attempt.
 */
export function pushbackMs(value: string | undefined): number {
  if (value === undefined) return 0;
  return /^\d{1,9}$/.test(value) ? Number(value) : Number.POSITIVE_INFINITY;
}
