/** RateLimitService: labelled requests are put to this service, over gRPC or in-process. */
import * as z from 'zod';
import type { RateLimitService } from './configuration.ts';
import { envelope, type Fault, label, serviceReference, strict, timeoutMs } from './fields.ts';
import { headerNames } from './header-fields.ts';
import { type RecordKind, recordKind } from './record-kind.ts';

/** Headers that frame the answer to the client: another value would break it. */
const untouchable = ['connection', 'content-encoding', 'content-length', 'transfer-encoding'];

/** What envoyproxy/ratelimit and Envoy call them. */
const limitHeaders = ['ratelimit', 'x-ratelimit'].flatMap((start) =>
  ['limit', 'remaining', 'reset'].map((end) => `${start}-${end}`),
);

const schema = strict({
  ...envelope,
  service: serviceReference(['grpc']),
  domain: label().default('gateway'),
  timeout_ms: timeoutMs().default(100),
  failure_mode_deny: z.boolean().default(false),
  headers: z.enum(['ietf', 'draft_03', 'none']).default('ietf'),
  allowed_response_headers: headerNames(untouchableFault).default(limitHeaders),
});

/** Every field that a RateLimitService may have. */
export const rateLimitServiceFieldNames: readonly string[] = Object.keys(schema.shape);

const examples = {
  apiVersion: 'gateway/v1',
  name: 'ratelimit',
  service: 'ratelimit',
  domain: 'gateway',
  timeout_ms: '100',
  failure_mode_deny: 'true',
  headers: 'draft_03',
  allowed_response_headers: '[RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset]',
} as const;

export const rateLimitServiceKind: RecordKind<RateLimitService> = recordKind({
  schema,
  examples,
  become: (fields, source) => ({
    kind: 'RateLimitService',
    name: fields.name,
    service: fields.service,
    domain: fields.domain,
    timeoutMs: fields.timeout_ms,
    failureModeDeny: fields.failure_mode_deny,
    headers: fields.headers,
    allowedResponseHeaders: fields.allowed_response_headers,
    source,
  }),
});

function untouchableFault(name: string): Fault | undefined {
  if (!untouchable.includes(name)) return undefined;
  const remedy = 'Remove it: the service can add headers that speak of the request, not of the answer.';
  return { message: `"${name}" frames the answer`, remedy };
}
