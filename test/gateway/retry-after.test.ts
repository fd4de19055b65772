/** How long a refused client is told to wait. */
import assert from 'node:assert/strict';
import type { DescriptorStatus } from '#ratelimit';
import { retryAfterSeconds } from '../../src/gateway/retry-after.ts';

const perMinute = { requestsPerUnit: 10, unit: 'minute', windowSeconds: 60, name: undefined } as const;

const over = (fields: Partial<DescriptorStatus> = {}): DescriptorStatus => ({
  code: 'OVER_LIMIT',
  currentLimit: perMinute,
  limitRemaining: 0,
  resetSeconds: 30,
  ...fields,
});

describe('the time to wait', () => {
  const check = (statuses: readonly DescriptorStatus[], seconds: number) =>
    assert.equal(retryAfterSeconds({ overallCode: 'OVER_LIMIT', statuses }), seconds);

  it('is that of the longest of the limits that are used up', () => {
    check([over({ resetSeconds: 5 }), over({ resetSeconds: 40 })], 40);
    check([over({ resetSeconds: 5 }), over({ code: 'OK', resetSeconds: 40 })], 5);
  });

  it('is never none', () => {
    check([over({ resetSeconds: 0 })], 1);
    check([over({ resetSeconds: -3 })], 1);
  });

  it('is the whole window when the service does not tell its end', () =>
    check([over({ resetSeconds: undefined })], 60));

  it('is what the service says of a limit that it does not name', () => check([over({ currentLimit: undefined })], 30));

  it('is a second when the service refuses without a reason', () => {
    check([], 1);
    check([over({ currentLimit: undefined, resetSeconds: undefined })], 1);
  });
});
