/** Edge cases of the rate-limit response headers. foreign-service.test.ts covers the common ones. */
import assert from 'node:assert/strict';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { RateLimitHeaderStyle } from '#config';
import { type DescriptorStatus, rateLimitHeaders, retryAfterSeconds } from '#ratelimit';
import { createServiceHeaders } from '../../../src/gateway/limits/stage.ts';

const perMinute = { requestsPerUnit: 10, unit: 'minute', windowSeconds: 60, name: undefined } as const;
const hourly = { requestsPerUnit: 1000, unit: 'hour', windowSeconds: 3600, name: 'hourly' } as const;

const status = (fields: Partial<DescriptorStatus> = {}): DescriptorStatus => ({
  code: 'OK',
  currentLimit: perMinute,
  limitRemaining: 9,
  resetSeconds: 30,
  ...fields,
});

const uncounted = status({ currentLimit: undefined, limitRemaining: 4_294_967_295, resetSeconds: undefined });
const endless = status({ resetSeconds: undefined });
const named = (name: string) => status({ currentLimit: { ...perMinute, name } });
const entriesOf = (...keys: string[]) => ({ entries: keys.map((key) => ({ key, value: '1' })) });

/** Returns the headers for three descriptors, with the keys `x-key`, `user`, and both. */
const headersOf = (style: RateLimitHeaderStyle, ...statuses: readonly DescriptorStatus[]) =>
  rateLimitHeaders[style]({
    statuses,
    descriptors: [entriesOf('x-key'), entriesOf('user'), entriesOf('x-key', 'user')],
  });

describe("the IETF's rate-limit headers", () => {
  for (const [what, statuses, policy, state] of [
    [
      'have an item for each limit that counted, in the order of the labels',
      [status(), status({ limitRemaining: 99 })],
      '"x-key";q=10;w=60, "user";q=10;w=60',
      '"x-key";r=9;t=30, "user";r=99;t=30',
    ],
    ['omit labels without a limit', [uncounted, status()], '"user";q=10;w=60', '"user";r=9;t=30'],
    [
      'name an unnamed limit after all its labels',
      [uncounted, uncounted, status()],
      '"x-key.user";q=10;w=60',
      '"x-key.user";r=9;t=30',
    ],
    [
      'use the name of a limit, escaped as a structured field',
      [named('a "b" \\ é')],
      '"a \\"b\\" \\\\ ?";q=10;w=60',
      '"a \\"b\\" \\\\ ?";r=9;t=30',
    ],
    ['have a reset of at least 0', [status({ resetSeconds: -5 })], '"x-key";q=10;w=60', '"x-key";r=9;t=0'],
    [
      'have a reset that fits into a structured field',
      [status({ resetSeconds: 2 ** 63 })],
      '"x-key";q=10;w=60',
      '"x-key";r=9;t=999999999999999',
    ],
  ] as const)
    it(what, () => assert.deepEqual(headersOf('ietf', ...statuses), { 'RateLimit-Policy': policy, RateLimit: state }));
});

describe('the rate-limit headers of draft 03', () => {
  const all = '10;w=60, 1000;w=3600;name="hourly"';
  const left = (limitRemaining: number) => status({ currentLimit: hourly, limitRemaining, resetSeconds: 7 });
  for (const [what, statuses, limit, remaining, reset] of [
    ['include the name of a limit that has one', [named('per "ip"')], '10, 10;w=60;name="per \\"ip\\""', '9', '30'],
    [
      'describe the limit with the smallest remaining quota, and list all limits',
      [status(), left(4)],
      `1000, ${all}`,
      '4',
      '7',
    ],
    ['describe the first of several with the same remaining quota', [status(), left(9)], `10, ${all}`, '9', '30'],
    ['omit labels without a limit', [uncounted, status()], '10, 10;w=60', '9', '30'],
    ['report the whole window when the service does not report its end', [endless], '10, 10;w=60', '9', '60'],
  ] as const)
    it(what, () => {
      const [one, two, three] = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'] as const;
      assert.deepEqual(headersOf('draft_03', ...statuses), { [one]: limit, [two]: remaining, [three]: reset });
    });
});

it('rate-limit headers are absent when no limit counted the request, and when they are disabled', () => {
  for (const style of ['ietf', 'draft_03'] as const) assert.deepEqual(headersOf(style, uncounted), {});
  assert.deepEqual(headersOf('none', status()), {});
});

describe('Retry-After', () => {
  const over = (fields: Partial<DescriptorStatus> = {}) => status({ code: 'OVER_LIMIT', limitRemaining: 0, ...fields });

  for (const [what, statuses, seconds] of [
    ['the longest of the exhausted limits', [over({ resetSeconds: 5 }), over({ resetSeconds: 40 })], 40],
    ['only the exhausted limits', [over({ resetSeconds: 5 }), status({ resetSeconds: 40 })], 5],
    ['at least a second', [over({ resetSeconds: -3 })], 1],
  ] as const)
    it(`covers ${what}`, () => assert.equal(retryAfterSeconds({ statuses }), seconds));
});

describe("a rate-limit service's own headers", () => {
  for (const [what, values, expected] of [
    ['replace a header of the same name, in any case', ['gold'], 'gold'],
    ['keep all values of a repeated header', ['gold', 'silver'], ['gold', 'silver']],
    ['are dropped when they would break the response', ['a\r\nSet-Cookie: b=1', 'nul\0', '名'], 'before'],
  ] as const)
    it(what, () => {
      const res = new ServerResponse(new IncomingMessage(new Socket()));
      res.setHeader('X-Plan', 'before');
      createServiceHeaders(['x-plan'])(
        res,
        values.map((value) => ({ name: 'x-PLAN', value })),
      );
      assert.deepEqual({ ...res.getHeaders() }, { 'x-plan': expected });
    });
});

describe('the rate-limit headers of a service that returns too much', () => {
  const least = status({ limitRemaining: 1 });
  for (const [what, statuses] of [
    ['thousands of statuses', [...Array.from({ length: 5000 }, () => status()), least]],
    ['a name of 60 KB', [status(), named('x'.repeat(60_000)), least]],
  ] as const)
    for (const style of ['ietf', 'draft_03'] as const)
      it(`stay small enough for clients, with ${what} (${style})`, () => {
        const values = Object.values(headersOf(style, ...statuses));
        assert.ok(
          values.length > 0 && values.every(({ length }) => length > 0 && length <= 2100),
          values.join().slice(0, 99),
        );
        if (style === 'draft_03') assert.ok(values.includes('1'));
      });
});
