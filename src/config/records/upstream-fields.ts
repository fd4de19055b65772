/** The fields of a Mapping that describe calls to its service: time-outs, connections, retries, limits and health. */
import * as z from 'zod';
import {
  loadBalancer,
  circuitBreakers as translateBreakers,
  healthChecks as translateHealthChecks,
  outlierDetection as translateOutliers,
} from '../ambassador/readers.ts';
import type { Fault } from '../errors.ts';
import { hostSchema } from '../fields/addresses.ts';
import {
  defaultsOf,
  field,
  type Given,
  mapOf,
  optional,
  type Row,
  type Rule,
  reportFault,
  snakeCase,
  strict,
  text,
  type ValuesOf,
} from '../fields/field.ts';
import { combined, described } from '../fields/json-schema.ts';
import {
  commaList,
  duration,
  filled,
  flag,
  listOfOne,
  milliseconds,
  singleLine,
  wholeNumber,
} from '../fields/values.ts';
import { quote } from '../quote.ts';
import { hostFault } from './match.ts';

/** A whole number from `min` to `max` with the default `value`. */
function count(min: number, max: number, value: number) {
  return field({ schema: wholeNumber(min, max), default: value });
}

/** A time, which records write as a duration (`timeout`) or, with `timeMs`, in milliseconds (`timeout_ms`). */
const time = optional({ schema: duration() });
const timeMs = optional({ schema: milliseconds().schema });

type TimeRows<Key extends string> = Readonly<Record<Key | `${Key}Ms`, Row<number | undefined>>>;

/** Rejects a map that has the time in both forms. */
function oneForm<Key extends string>(key: Key): Rule<TimeRows<Key>> {
  return {
    at: `${key}Ms`,
    reads: [key],
    present: { of: [key, `${key}Ms`], max: 1 },
    faultOf: (given: Given<TimeRows<Key>>) =>
      given[key] === undefined || given[`${key}Ms`] === undefined
        ? undefined
        : { message: `cannot be combined with ${snakeCase(key)}`, remedy: 'Keep one of the two.' },
  };
}

const conditions = [
  '5xx',
  'gateway-error',
  'connect-failure',
  'refused-stream',
  'reset',
  'retriable-4xx',
  'retriable-status-codes',
] as const;

/** The statuses of gRPC after which a call is retried. The names are Envoy's. */
const grpcConditions = ['cancelled', 'deadline-exceeded', 'internal', 'resource-exhausted', 'unavailable'] as const;

export type GrpcRetryCondition = (typeof grpcConditions)[number];

/** A condition under which a failed attempt is retried. */
export type RetryCondition = (typeof conditions)[number] | GrpcRetryCondition;

export interface RetryPolicy {
  readonly retryOn: readonly RetryCondition[];
  /** Does not include the first attempt. */
  readonly numRetries: number;
  /** How long one attempt waits for response headers. Undefined to use the rest of the mapping's `timeout_ms`. */
  readonly perTryTimeoutMs: number | undefined;
  /** The statuses to retry under `retriable-status-codes`. */
  readonly statusCodes: readonly number[];
}

const retryFields = {
  retryOn: field({
    schema: filled(
      commaList(z.enum([...conditions, ...grpcConditions])),
      'Name a condition: retry_on: connect-failure',
    ),
  }),
  numRetries: count(0, 10, 1),
  perTryTimeout: time,
  perTryTimeoutMs: timeMs,
  statusCodes: field({ name: 'retriable_status_codes', schema: z.array(wholeNumber(400, 599)), default: [] }),
};

const retryPolicy = mapOf(retryFields, [
  oneForm('perTryTimeout'),
  { at: 'statusCodes', reads: ['retryOn'], faultOf: statusCodesFault },
]).transform(
  ({ perTryTimeout, ...policy }): RetryPolicy => ({
    ...policy,
    perTryTimeoutMs: perTryTimeout ?? policy.perTryTimeoutMs,
  }),
);

function statusCodesFault({ retryOn = [], statusCodes: codes = [] }: Given<typeof retryFields>): Fault | undefined {
  if (retryOn.includes('retriable-status-codes') === codes.length > 0) return undefined;
  return {
    message: `${codes.length > 0 ? 'lists codes' : 'is empty'}, but retry_on ${codes.length > 0 ? 'does not contain' : 'contains'} retriable-status-codes`,
    remedy: 'Set both: retry_on: [retriable-status-codes] and retriable_status_codes: [503]',
  };
}

const limitMax = 1_000_000;

/** The defaults are Envoy's where it has the same limit, so that teams that migrate from it keep their limits. */
const breakerFields = {
  /** Connections to each address of the service. */
  maxConnections: count(1, limitMax, 1024),
  /** Requests that wait for a connection. */
  maxPendingRequests: count(0, limitMax, 1024),
  maxRequests: count(1, limitMax, 1024),
  maxRetries: count(0, limitMax, 3),
  /** Connections that have switched protocols, such as WebSockets. */
  maxUpgrades: count(1, limitMax, 10_000),
};

/** Limits on a mapping's concurrent use of its service. Requests over a limit get an immediate 503. */
export type CircuitBreakers = ValuesOf<typeof breakerFields>;

const circuitBreakersDefault = defaultsOf(breakerFields);

const circuitBreakers = listOfOne(
  mapOf({
    ...breakerFields,
    // Accepted for compatibility with Envoy.
    priority: optional({ schema: z.literal('default') }),
  }).transform(({ priority: _priority, ...limits }): CircuitBreakers => limits),
);

/** Returns the fault of a mapping without `grpc` whose `retry_on` names a status of gRPC. */
export function grpcConditionFault({ retryOn }: RetryPolicy): Fault | undefined {
  const found = retryOn.find((one) => grpcConditions.some((name) => name === one));
  return (
    found && { message: `retries after the gRPC status ${found}, but the mapping is not for gRPC`, remedy: addGrpc }
  );
}

/** Returns the fault of a mapping without `grpc` whose health check is one of gRPC. */
export function grpcCheckFault({ grpc }: HealthCheck): Fault | undefined {
  return grpc && { message: 'has a check over gRPC, but the mapping is not for gRPC', remedy: addGrpc };
}

const addGrpc = 'Add grpc: true to the mapping, if its service speaks gRPC.';

/** Each address of the service is checked at this interval, with or without traffic. */
export interface HealthCheck {
  /** Asks `grpc.health.v1` for the status of this service, `''` for that of the server. Undefined for a check over HTTP. */
  readonly grpc: { readonly service: string } | undefined;
  /** The path on the service, which is not rewritten. */
  readonly path: string;
  /** The `Host` header of the check. Undefined to use the address. */
  readonly hostname: string | undefined;
  readonly timeoutMs: number;
  readonly intervalMs: number;
  /** Consecutive failures that make an address unhealthy. */
  readonly unhealthyThreshold: number;
  /** Consecutive successes that make it healthy again. */
  readonly healthyThreshold: number;
  readonly expectedStatuses: readonly { readonly min: number; readonly max: number }[];
}

const statusCode = wholeNumber(100, 599);
const statusRange = strict({ min: statusCode, max: statusCode }).check((payload) => {
  const { min, max } = payload.value;
  if (min > max) reportFault(payload, ['min'], { message: `is above max: ${min} to ${max}`, remedy: 'Swap the two.' });
});

const pathForm = /^\/[\x21-\x22\x24-\x7e]*$/;

const http = strict({
  path: text(pathFault, { pattern: pathForm.source }),
  hostname: text(hostFault, hostSchema).optional(),
  expected_statuses: z.array(statusRange).default([{ min: 200, max: 200 }]),
});

const grpc = strict({
  upstream_name: singleLine().default(''),
  authority: text(hostFault, hostSchema).optional(),
});

const probe = described(
  strict({ http: http.optional(), grpc: grpc.optional() }).check((payload) => {
    const count = Object.values(payload.value).filter((one) => one !== undefined).length;
    if (count !== 1)
      reportFault(payload, [], {
        message: count === 0 ? 'is empty' : 'has two kinds of checks',
        remedy: 'Write one: { http: { path: /health } } or { grpc: { upstream_name: package.Service } }.',
      });
  }),
  { allOf: combined(['http', 'grpc'], { min: 1, max: 1 }) },
);

const healthCheckFields = {
  timeout: time,
  timeoutMs: timeMs,
  interval: time,
  intervalMs: timeMs,
  unhealthyThreshold: count(1, 100, 2),
  healthyThreshold: count(1, 100, 1),
  healthCheck: field({ schema: probe }),
};

const healthChecks = listOfOne(
  mapOf(healthCheckFields, [oneForm('timeout'), oneForm('interval')]).transform(
    ({ healthCheck, timeout, interval, ...given }): HealthCheck => ({
      ...given,
      ...requestOf(healthCheck),
      timeoutMs: timeout ?? given.timeoutMs ?? 3000,
      intervalMs: interval ?? given.intervalMs ?? 5000,
    }),
  ),
);

/** The request of a check. One over gRPC has the path that the protocol defines. */
function requestOf({
  http: request,
  grpc: asked,
}: z.output<typeof probe>): Pick<HealthCheck, 'grpc' | 'path' | 'hostname' | 'expectedStatuses'> {
  if (asked !== undefined)
    return {
      grpc: { service: asked.upstream_name },
      path: '/grpc.health.v1.Health/Check',
      hostname: asked.authority,
      expectedStatuses: [{ min: 200, max: 200 }],
    };
  const { path = '/', hostname, expected_statuses: expectedStatuses = [] } = request ?? {};
  return { grpc: undefined, path, hostname, expectedStatuses };
}

function pathFault(path: string): Fault | undefined {
  if (pathForm.test(path)) return undefined;
  return {
    message: `${quote(path)} is not a path`,
    remedy: 'Write a path on the service, for example "/health".',
  };
}

const outlierFields = {
  /** 0 turns it off. */
  consecutive5xx: field({ name: 'consecutive_5xx', schema: wholeNumber(0, 1000), default: 5 }),
  /** Multiplied by the number of consecutive ejections. */
  baseEjectionTimeMs: field({ schema: milliseconds().schema, default: 30_000 }),
  /** The share of the addresses of the service. */
  maxEjectionPercent: count(0, 100, 50),
};

/** Ejects an address for a while after consecutive failures, unless too many addresses are ejected already. */
export type OutlierDetection = ValuesOf<typeof outlierFields>;

const outlierDetectionDefault = defaultsOf(outlierFields);

const outlierDetection = mapOf(outlierFields);

/** A part of the table in mapping-fields.ts. */
export const upstreamFields = {
  grpc: field({
    ...flag,
    default: false,
    docs: 'The service speaks gRPC, so it is called over HTTP/2. See [gRPC](#grpc).',
    allowedWithRedirect: false,
  }),
  timeoutMs: optional({
    ...milliseconds(0),
    shownDefault: '`UPSTREAM_TIMEOUT_MS`',
    docs: "How long to wait for the service's response headers, including retries; 0 means no limit. With `grpc`, how long the whole call may take.",
    allowedWithRedirect: false,
  }),
  connectTimeoutMs: optional({
    ...milliseconds(),
    shownDefault: '`UPSTREAM_CONNECT_TIMEOUT_MS`',
    docs: 'How long to wait for a connection to the service.',
    allowedWithRedirect: false,
  }),
  idleTimeoutMs: optional({
    ...milliseconds(0),
    shownDefault: '`UPSTREAM_IDLE_TIMEOUT_MS`',
    docs: 'How long a request or response body may pause; 0 means no limit.',
    example: '60000',
    allowedWithRedirect: false,
  }),
  idleConnectionMs: optional({
    ...milliseconds(),
    shownDefault: '`1500`',
    docs: "How long an idle connection to the service is kept open. A shorter time in the service's `Keep-Alive` header wins; a longer one, up to 60000, applies only if this field is not set. Over HTTP/2, the default is `60000`.",
    example: '1500',
    allowedWithRedirect: false,
  }),
  connectionLifetimeMs: field({
    ...milliseconds(0),
    default: 600_000,
    docs: 'How long a connection to the service gets new requests, less up to a tenth at random; 0 means no limit. A new connection asks DNS again.',
    example: '60000',
    allowedWithRedirect: false,
  }),
  http2: field({
    ...flag,
    default: false,
    docs: 'Calls the service over HTTP/2, whatever the client speaks: over TLS for `https`, and otherwise with prior knowledge.',
    allowedWithRedirect: false,
  }),
  maxRequestBytes: optional({
    schema: wholeNumber(1, Number.MAX_SAFE_INTEGER),
    type: 'bytes',
    shownDefault: '`BODY_BYTES_MAX`',
    docs: 'The maximum request body to a service over HTTP; larger ones get a 413.',
    example: '104857600',
    allowedWithRedirect: false,
  }),
  retryPolicy: optional({
    schema: retryPolicy,
    type: 'map',
    docs: '`retry_on` (`5xx`, `gateway-error`, `connect-failure`, `refused-stream`, `reset`, `retriable-4xx`, `retriable-status-codes`; with `grpc` also `cancelled`, `deadline-exceeded`, `internal`, `resource-exhausted`, `unavailable`), `num_retries` (0 to 10, default 1), `per_try_timeout` or `per_try_timeout_ms`, `retriable_status_codes`.',
    example: '{ retry_on: connect-failure, num_retries: 2, per_try_timeout: 1s }',
    allowedWithRedirect: false,
  }),
  circuitBreakers: field({
    schema: circuitBreakers,
    type: 'map',
    default: circuitBreakersDefault,
    shownDefault: '1024, 1024, 1024, 3, 10000',
    docs: '`max_connections` to each address, `max_pending_requests`, `max_requests`, `max_retries`, and `max_upgrades` for connections that have switched protocols. Requests over a limit get an immediate 503.',
    example: '{ max_requests: 100 }',
    allowedWithRedirect: false,
    ambassador: translateBreakers,
  }),
  healthCheck: optional({
    name: 'health_checks',
    schema: healthChecks,
    type: 'map',
    docs: '`timeout` (3s), `interval` (5s), `unhealthy_threshold` (2), `healthy_threshold` (1), `health_check: { http: { path, hostname, expected_statuses: [{ min, max }] } }`, or with `grpc` `health_check: { grpc: { upstream_name, authority } }`, in which both are optional.',
    example: '{ interval: 5s, health_check: { http: { path: /health } } }',
    allowedWithRedirect: false,
    ambassador: translateHealthChecks,
  }),
  outlierDetection: field({
    schema: outlierDetection,
    type: 'map',
    default: outlierDetectionDefault,
    shownDefault: '5, 30000, 50',
    docs: '`consecutive_5xx` failures that eject an address (0 turns it off), `base_ejection_time_ms`, `max_ejection_percent`.',
    example: '{ consecutive_5xx: 5, base_ejection_time_ms: 30000, max_ejection_percent: 50 }',
    allowedWithRedirect: false,
    ambassador: translateOutliers,
  }),
  loadBalancer: field({
    schema: strict({ policy: z.enum(['round_robin', 'least_request']) }).transform(({ policy }) => policy),
    type: 'map',
    default: 'round_robin',
    docs: '`policy`: `round_robin` or `least_request`.',
    example: '{ policy: least_request }',
    allowedWithRedirect: false,
    ambassador: loadBalancer,
  }),
};
