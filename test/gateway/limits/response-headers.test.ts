/** Rate-limit headers of responses. */
import assert from 'node:assert/strict';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { RateLimitHeaderStyle } from '#config';
import type { DescriptorStatus, ResponseHeader } from '#ratelimit';
import {
  createServiceHeaders,
  rateLimitHeaders,
  retryAfterSeconds,
} from '../../../src/gateway/limits/response-headers.ts';

const perMinute = { requestsPerUnit: 10, unit: 'minute', windowSeconds: 60, name: undefined } as const;

const status = (fields: Partial<DescriptorStatus> = {}): DescriptorStatus => ({
  code: 'OK',
  currentLimit: perMinute,
  limitRemaining: 9,
  resetSeconds: 30,
  ...fields,
});

const uncounted = status({ currentLimit: undefined, limitRemaining: 4_294_967_295, resetSeconds: undefined });
const named = (name: string) => status({ currentLimit: { ...perMinute, name } });

function headersOf(style: RateLimitHeaderStyle, ...statuses: DescriptorStatus[]): Readonly<Record<string, string>> {
  const descriptors = [{ entries: [{ key: 'x-key', value: '1' }] }, { entries: [{ key: 'user', value: 'demo' }] }];
  return rateLimitHeaders[style]({ statuses, descriptors });
}

describe("the IETF's rate-limit headers", () => {
  const check = (statuses: readonly DescriptorStatus[], policy: string, state: string) =>
    assert.deepEqual(headersOf('ietf', ...statuses), { 'RateLimit-Policy': policy, RateLimit: state });

  it('give label, quota, window, remainder and reset', () =>
    check([status()], '"x-key";q=10;w=60', '"x-key";r=9;t=30'));

  it('have an item for each limit that counted, in the order of the labels', () =>
    check(
      [status(), status({ limitRemaining: 99 })],
      '"x-key";q=10;w=60, "user";q=10;w=60',
      '"x-key";r=9;t=30, "user";r=99;t=30',
    ));

  it('leave out labels without a limit, and keep the names of the others', () =>
    check([uncounted, status()], '"user";q=10;w=60', '"user";r=9;t=30'));

  it('are missing when no limit counted', () => {
    assert.deepEqual(headersOf('ietf', uncounted), {});
    assert.deepEqual(headersOf('ietf'), {});
  });

  it('use the name of a limit, escaped as a structured field', () =>
    check([named('a "b" \\ é')], '"a \\"b\\" \\\\ ?";q=10;w=60', '"a \\"b\\" \\\\ ?";r=9;t=30'));

  it('name a limit without a name by all its labels', () => {
    const entries = ['x-key', 'user'].map((key) => ({ key, value: 'a' }));
    const headers = rateLimitHeaders.ietf({ statuses: [status()], descriptors: [{ entries }] });
    assert.equal(headers['RateLimit-Policy'], '"x-key.user";q=10;w=60');
  });

  it('leave out the reset when the service does not say it', () =>
    check([status({ resetSeconds: undefined })], '"x-key";q=10;w=60', '"x-key";r=9'));

  it('bound the reset to numbers that a structured field can hold', () => {
    check([status({ resetSeconds: -5 })], '"x-key";q=10;w=60', '"x-key";r=9;t=0');
    check([status({ resetSeconds: 2 ** 63 })], '"x-key";q=10;w=60', '"x-key";r=9;t=999999999999999');
  });
});

describe('the rate-limit headers of draft 03', () => {
  const check = (statuses: readonly DescriptorStatus[], limit: string, remaining: string, reset: string) =>
    assert.deepEqual(headersOf('draft_03', ...statuses), {
      'X-RateLimit-Limit': limit,
      'X-RateLimit-Remaining': remaining,
      'X-RateLimit-Reset': reset,
    });

  it('give quota, policy, remainder and reset', () => check([status()], '10, 10;w=60', '9', '30'));

  it('give the name of a limit that has one', () =>
    check([named('per "ip"')], '10, 10;w=60;name="per \\"ip\\""', '9', '30'));

  it('describe the limit with the least left, the first of equals, and list all', () => {
    const hourly = { requestsPerUnit: 1000, unit: 'hour', windowSeconds: 3600, name: 'hourly' } as const;
    const list = '10;w=60, 1000;w=3600;name="hourly"';
    check([status(), status({ currentLimit: hourly, limitRemaining: 4, resetSeconds: 7 })], `1000, ${list}`, '4', '7');
    check([status(), status({ currentLimit: hourly, limitRemaining: 9, resetSeconds: 7 })], `10, ${list}`, '9', '30');
  });

  it('leave out labels without a limit', () => check([uncounted, status()], '10, 10;w=60', '9', '30'));

  it('give the whole window when the service does not say when it ends', () =>
    check([status({ resetSeconds: undefined })], '10, 10;w=60', '9', '60'));

  it('are missing when no limit counted', () => assert.deepEqual(headersOf('draft_03', uncounted), {}));
});

it('rate-limit headers can be switched off', () => assert.deepEqual(headersOf('none', status()), {}));

describe('Retry-After', () => {
  const over = (fields: Partial<DescriptorStatus> = {}) => status({ code: 'OVER_LIMIT', limitRemaining: 0, ...fields });

  for (const [what, statuses, seconds] of [
    ['the longest of the exhausted limits', [over({ resetSeconds: 5 }), over({ resetSeconds: 40 })], 40],
    ['only the exhausted limits', [over({ resetSeconds: 5 }), status({ resetSeconds: 40 })], 5],
    ['at least a second', [over({ resetSeconds: -3 })], 1],
    ['the whole window when the service does not say when it ends', [over({ resetSeconds: undefined })], 60],
    ['the time of a limit without a name or quota', [over({ currentLimit: undefined })], 30],
    ['a second when the service refuses without a status', [], 1],
    ['a second without a limit and a time', [over({ currentLimit: undefined, resetSeconds: undefined })], 1],
  ] as const) {
    it(`is ${what}`, () => assert.equal(retryAfterSeconds({ statuses }), seconds));
  }
});

describe("a rate-limit service's own headers", () => {
  function check(what: string, headers: readonly ResponseHeader[] | undefined, expected: object): void {
    it(what, () => {
      const res = new ServerResponse(new IncomingMessage(new Socket()));
      res.setHeader('X-Plan', 'before');
      createServiceHeaders(['x-plan', 'ratelimit-limit'])(res, headers);
      assert.deepEqual({ ...res.getHeaders() }, expected);
    });
  }
  const plans = (...values: string[]) => values.map((value) => ({ name: 'x-PLAN', value }));

  check('are added under the allowed names', [{ name: 'RateLimit-Limit', value: '10' }], {
    ...{ 'x-plan': 'before', 'ratelimit-limit': '10' },
  });
  check('replace a header of the same name, in any case', plans('gold'), { 'x-plan': 'gold' });
  check('keep all values of a repeated name', plans('gold', 'silver'), { 'x-plan': ['gold', 'silver'] });
  check('are dropped under other names', [{ name: 'Set-Cookie', value: 'a=1' }], { 'x-plan': 'before' });
  check('are dropped when they would break the response', plans('a\r\nSet-Cookie: b=1', 'nul\0', '名'), {
    'x-plan': 'before',
  });
  check('may be missing', undefined, { 'x-plan': 'before' });
});
