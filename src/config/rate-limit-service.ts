/** RateLimitService: labelled requests are put to this service, over gRPC or in-process. */
import * as z from 'zod';
import type { RateLimitService } from './configuration.ts';
import { envelope, label, serviceReference, strict, timeoutMs } from './fields.ts';
import { type RecordKind, recordKind } from './record-kind.ts';

const schema = strict({
  ...envelope,
  service: serviceReference(['grpc']),
  domain: label().default('gateway'),
  timeout_ms: timeoutMs().default(100),
  failure_mode_deny: z.boolean().default(false),
});

const examples = {
  apiVersion: 'gateway/v1',
  name: 'ratelimit',
  service: 'ratelimit',
  domain: 'gateway',
  timeout_ms: '100',
  failure_mode_deny: 'true',
} as const;

export const rateLimitServiceKind: RecordKind<RateLimitService> = recordKind(schema, examples, (fields, source) => ({
  kind: 'RateLimitService',
  name: fields.name,
  service: fields.service,
  domain: fields.domain,
  timeoutMs: fields.timeout_ms,
  failureModeDeny: fields.failure_mode_deny,
  source,
}));
