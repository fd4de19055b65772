/** The fields of a Mapping that describe calls to its service: time-outs, connections, retries and health. */
import * as z from 'zod';
import {
  loadBalancer,
  circuitBreakers as translateBreakers,
  healthChecks as translateHealthChecks,
  outlierDetection as translateOutliers,
} from '../ambassador/readers.ts';
import { field, optional, strict } from '../fields/field.ts';
import { milliseconds, wholeNumber } from '../fields/values.ts';
import {
  circuitBreakers,
  circuitBreakersDefault,
  healthChecks,
  outlierDetection,
  outlierDetectionDefault,
  retryPolicy,
} from './resilience.ts';

/** A part of the table in mapping-fields.ts. */
export const upstreamFields = {
  timeoutMs: optional({
    name: 'timeout_ms',
    ...milliseconds(0),
    shownDefault: '`UPSTREAM_TIMEOUT_MS`',
    docs: "How long to wait for the service's response headers, including retries; 0 means no limit.",
    allowedWithRedirect: false,
  }),
  connectTimeoutMs: optional({
    name: 'connect_timeout_ms',
    ...milliseconds(),
    shownDefault: '`UPSTREAM_CONNECT_TIMEOUT_MS`',
    docs: 'How long to wait for a connection to the service.',
    allowedWithRedirect: false,
  }),
  idleTimeoutMs: optional({
    name: 'idle_timeout_ms',
    ...milliseconds(0),
    shownDefault: '`UPSTREAM_IDLE_TIMEOUT_MS`',
    docs: 'How long a request or response body may pause; 0 means no limit.',
    example: '60000',
    allowedWithRedirect: false,
  }),
  idleConnectionMs: optional({
    name: 'idle_connection_ms',
    ...milliseconds(),
    shownDefault: '`1500`',
    docs: "How long an idle connection to the service is kept open. A shorter time in the service's `Keep-Alive` header wins; a longer one, up to 60000, applies only if this field is not set.",
    example: '1500',
    allowedWithRedirect: false,
  }),
  connectionLifetimeMs: field({
    name: 'connection_lifetime_ms',
    ...milliseconds(0),
    default: 600_000,
    docs: 'How long a connection to the service gets new requests, less up to a tenth at random; 0 means no limit. A new connection asks DNS again.',
    example: '60000',
    allowedWithRedirect: false,
  }),
  maxRequestBytes: optional({
    name: 'max_request_bytes',
    schema: wholeNumber(1, Number.MAX_SAFE_INTEGER),
    type: 'bytes',
    shownDefault: '`BODY_BYTES_MAX`',
    docs: 'The maximum request body to a service over HTTP; larger ones get a 413.',
    example: '104857600',
    allowedWithRedirect: false,
  }),
  retryPolicy: optional({
    name: 'retry_policy',
    schema: retryPolicy,
    type: 'map',
    docs: '`retry_on` (`5xx`, `gateway-error`, `connect-failure`, `refused-stream`, `reset`, `retriable-4xx`, `retriable-status-codes`), `num_retries` (0 to 10, default 1), `per_try_timeout` or `per_try_timeout_ms`, `retriable_status_codes`.',
    example: '{ retry_on: connect-failure, num_retries: 2, per_try_timeout: 1s }',
    allowedWithRedirect: false,
  }),
  circuitBreakers: field({
    name: 'circuit_breakers',
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
    docs: '`timeout` (3s), `interval` (5s), `unhealthy_threshold` (2), `healthy_threshold` (1), `health_check: { http: { path, hostname, expected_statuses: [{ min, max }] } }`.',
    example: '{ interval: 5s, health_check: { http: { path: /health } } }',
    allowedWithRedirect: false,
    ambassador: translateHealthChecks,
  }),
  outlierDetection: field({
    name: 'outlier_detection',
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
    name: 'load_balancer',
    schema: strict({ policy: z.enum(['round_robin', 'least_request']) }).transform(({ policy }) => policy),
    type: 'map',
    default: 'round_robin',
    docs: '`policy`: `round_robin` or `least_request`.',
    example: '{ policy: least_request }',
    allowedWithRedirect: false,
    ambassador: loadBalancer,
  }),
};
