/** retry_policy: which failures of an attempt may be followed by another attempt. */
import * as z from 'zod';
import { commaList } from './choices.ts';
import { duration } from './durations.ts';
import { complain, refuseEmpty, strict, timeoutMs, wholeNumber } from './fields.ts';
import type { RetryPolicy } from './mapping-parts.ts';

const conditions = [
  '5xx',
  'gateway-error',
  'connect-failure',
  'refused-stream',
  'reset',
  'retriable-4xx',
  'retriable-status-codes',
] as const;

const fields = strict({
  retry_on: commaList().pipe(
    z.array(z.enum(conditions)).check(refuseEmpty('Name a condition: retry_on: connect-failure')),
  ),
  num_retries: wholeNumber(0, 10).default(1),
  per_try_timeout: duration().optional(),
  per_try_timeout_ms: timeoutMs().optional(),
  retriable_status_codes: z.array(wholeNumber(400, 599)).default([]),
});

export const retryPolicySchema = fields.check(checkTogether).transform(
  (given): RetryPolicy => ({
    retryOn: given.retry_on,
    numRetries: given.num_retries,
    perTryTimeoutMs: given.per_try_timeout ?? given.per_try_timeout_ms,
    statusCodes: given.retriable_status_codes,
  }),
);

function checkTogether(payload: z.core.ParsePayload<z.infer<typeof fields>>): void {
  const { retry_on: retryOn, retriable_status_codes: codes, ...timeouts } = payload.value;
  if (timeouts.per_try_timeout !== undefined && timeouts.per_try_timeout_ms !== undefined) {
    const remedy = 'Keep one of the two.';
    complain(payload, ['per_try_timeout_ms'], { message: 'stands beside per_try_timeout', remedy });
  }
  if (retryOn.includes('retriable-status-codes') === codes.length > 0) return;
  complain(payload, ['retriable_status_codes'], {
    message: `${codes.length > 0 ? 'lists codes, but' : 'is empty, and'} retry_on ${codes.length > 0 ? 'does not hold' : 'holds'} retriable-status-codes`,
    remedy: 'Write both: retry_on: [retriable-status-codes] and retriable_status_codes: [503]',
  });
}
