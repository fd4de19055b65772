/** health_checks and outlier_detection: when an address of a service is left out. */
import * as z from 'zod';
import { listOfOne } from './choices.ts';
import { duration } from './durations.ts';
import { complain, type Fault, strict, text, timeoutMs, wholeNumber } from './fields.ts';
import { hostFault } from './host-match.ts';
import { mappingDefaults } from './mapping-defaults.ts';
import type { HealthCheck, OutlierDetection } from './mapping-parts.ts';

const statusCode = wholeNumber(100, 599);

const range = strict({ min: statusCode, max: statusCode }).check((payload) => {
  const { min, max } = payload.value;
  if (min > max) complain(payload, ['min'], { message: `is above max: ${min} to ${max}`, remedy: 'Swap the two.' });
});

const http = strict({
  path: text(pathFault),
  hostname: text(hostFault).optional(),
  expected_statuses: z.array(range).default([{ min: 200, max: 200 }]),
});

const fields = strict({
  timeout: duration().optional(),
  timeout_ms: timeoutMs().optional(),
  interval: duration().optional(),
  interval_ms: timeoutMs().optional(),
  unhealthy_threshold: wholeNumber(1, 100).default(2),
  healthy_threshold: wholeNumber(1, 100).default(1),
  health_check: strict({ http }),
});

const healthCheck = fields.check(refuseBothForms).transform(
  ({ health_check: { http: request }, ...given }): HealthCheck => ({
    path: request.path,
    hostname: request.hostname,
    timeoutMs: given.timeout ?? given.timeout_ms ?? 3000,
    intervalMs: given.interval ?? given.interval_ms ?? 5000,
    unhealthyThreshold: given.unhealthy_threshold,
    healthyThreshold: given.healthy_threshold,
    expectedStatuses: request.expected_statuses,
  }),
);

export const healthChecksSchema = listOfOne(healthCheck);

const { outlierDetection: defaults } = mappingDefaults;

export const outlierDetectionSchema = strict({
  consecutive_5xx: wholeNumber(0, 1000).default(defaults.consecutive5xx),
  base_ejection_time_ms: timeoutMs().default(defaults.baseEjectionTimeMs),
  max_ejection_percent: wholeNumber(0, 100).default(defaults.maxEjectionPercent),
}).transform(
  (given): OutlierDetection => ({
    consecutive5xx: given.consecutive_5xx,
    baseEjectionTimeMs: given.base_ejection_time_ms,
    maxEjectionPercent: given.max_ejection_percent,
  }),
);

function refuseBothForms(payload: z.core.ParsePayload<z.infer<typeof fields>>): void {
  for (const name of ['timeout', 'interval'] as const) {
    if (payload.value[name] === undefined || payload.value[`${name}_ms`] === undefined) continue;
    complain(payload, [`${name}_ms`], { message: `stands beside ${name}`, remedy: 'Keep one of the two.' });
  }
}

function pathFault(path: string): Fault | undefined {
  if (/^\/[\x21-\x22\x24-\x7e]*$/.test(path)) return undefined;
  return {
    message: `${JSON.stringify(path)} is not a path`,
    remedy: 'Write it as the service has it, for example "/health".',
  };
}
