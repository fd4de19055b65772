/** What a client reads of its limits. */
import assert from 'node:assert/strict';
import type { Decision, DescriptorStatus } from '#ratelimit';
import { rateLimitHeaders } from '../../src/gateway/ratelimit-headers.ts';

const perMinute = { requestsPerUnit: 10, unit: 'minute', windowSeconds: 60, name: undefined } as const;

const status = (fields: Partial<DescriptorStatus> = {}): DescriptorStatus => ({
  code: 'OK',
  currentLimit: perMinute,
  limitRemaining: 9,
  resetSeconds: 30,
  ...fields,
});

const over = (fields: Partial<DescriptorStatus> = {}) => status({ code: 'OVER_LIMIT', limitRemaining: 0, ...fields });

const told = (...statuses: DescriptorStatus[]) => {
  const overallCode: Decision['overallCode'] = statuses.some(({ code }) => code !== 'OK') ? 'OVER_LIMIT' : 'OK';
  const descriptors = [{ entries: [{ key: 'x-key', value: '1' }] }, { entries: [{ key: 'user', value: 'demo' }] }];
  return rateLimitHeaders({ overallCode, statuses }, descriptors);
};

describe('rate-limit headers', () => {
  it('name the label, the quota, the window, what is left and when there is more', () => {
    assert.deepEqual(told(status()), {
      policy: '"x-key";q=10;w=60',
      state: '"x-key";r=9;t=30',
      retryAfter: undefined,
    });
  });

  it('have an item for each limit that counted, in the order of the labels', () => {
    const two = told(status(), status({ limitRemaining: 99 }));
    assert.equal(two?.policy, '"x-key";q=10;w=60, "user";q=10;w=60');
    assert.equal(two?.state, '"x-key";r=9;t=30, "user";r=99;t=30');
  });

  it('leave out labels without a limit, but keep the names in step', () => {
    const second = told(status({ currentLimit: undefined }), status());
    assert.equal(second?.policy, '"user";q=10;w=60');
  });

  it('are not there when no limit counted', () => {
    assert.equal(told(status({ currentLimit: undefined })), undefined);
    assert.equal(told(), undefined);
  });

  it('call a limit by its own name, escaped as a structured field wants it', () => {
    const named = told(status({ currentLimit: { ...perMinute, name: 'a "b" \\ é' } }));
    assert.equal(named?.policy, '"a \\"b\\" \\\\ ?";q=10;w=60');
  });

  it('say to wait for the longest of the limits that are used up', () => {
    assert.equal(told(over({ resetSeconds: 5 }), over({ resetSeconds: 40 }))?.retryAfter, 40);
    assert.equal(told(over({ resetSeconds: 5 }), status({ resetSeconds: 40 }))?.retryAfter, 5);
  });

  it('never say to come back at once', () => {
    assert.equal(told(over({ resetSeconds: 0 }))?.retryAfter, 1);
  });

  it('say to wait for the whole window when the service does not tell its end', () => {
    const blind = told(over({ resetSeconds: undefined }));
    assert.equal(blind?.retryAfter, 60);
    assert.equal(blind?.state, '"x-key";r=0');
  });
});
