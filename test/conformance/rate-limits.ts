/** Section 8: ten requests a minute for each value of the label header, and what the client is told of it. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Response, Test } from 'supertest';
import { bareProblem } from '../support/error-body.ts';
import { call, callAsDemo, type OpenDesk } from './desk.ts';

export function rateLimitCases(desk: OpenDesk): void {
  const labelled = (value: string) => callAsDemo(desk, '/v1/hotels').set('X-Gateway-Test-Allow', value);

  describe('rate limits', () => {
    it('lets ten labelled requests a minute pass and refuses the next with 429', async () => {
      const { passed, refused } = await exhaust(labelled);
      // The minute may turn once on the way, and then the count starts again.
      assert.deepEqual(passed.map(remaining).slice(-10), [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
      assert.equal(refused.status, 429);
    });

    it('tells a refused client what happened, when to come back and what its quota is', async () => {
      const { refused } = await exhaust(labelled);
      bareProblem('too-many-requests')(refused);
      assert.equal(refused.headers['content-type'], 'application/json');
      assert.match(refused.headers['retry-after'] ?? '', /^(?:[1-9]|[1-5]\d|60)$/);
      assert.match(refused.headers['ratelimit-policy'] ?? '', /(?:^|, )"x-gateway-test-allow";q=10;w=60(?:,|$)/);
      assert.match(refused.headers['ratelimit'] ?? '', /(?:^|, )"x-gateway-test-allow";r=0;t=\d+(?:,|$)/);
    });

    it('counts each value of the header for itself', async () => {
      const { passed } = await exhaust(labelled);
      assert.ok(passed.length >= 10);
      await labelled(randomUUID()).expect(200);
    });

    it('tells what is left on every response whose request was counted, errors included', async () => {
      const absent = () => callAsDemo(desk, '/v1/hotels/nowhere').set('x-gateway-test-allow', randomUUID());
      const answer = await untilCounted(absent);
      assert.equal(answer.status, 404);
      assert.equal(remaining(answer), 9);
    });

    it('counts nothing before the caller is known', async () => {
      const value = randomUUID();
      for (let sent = 0; sent < 12; sent += 1) {
        await call(desk, '/v1/hotels').set('x-gateway-test-allow', value).expect(401);
      }
      await labelled(value).expect(200);
    });

    it('knows the user: requests without the label count for the user alone', async () => {
      const { headers } = await untilCounted(() => callAsDemo(desk, '/v1/hotels'));
      assert.equal(headers['ratelimit-policy'], '"x-travel-user";q=6000;w=60');
    });

    it('says nothing of limits where a mapping has no labels', async () => {
      const { headers } = await callAsDemo(desk, '/v1/cars').set('x-gateway-test-allow', randomUUID()).expect(200);
      assert.equal(headers['ratelimit'], undefined);
      assert.equal(headers['ratelimit-policy'], undefined);
    });
  });
}

interface Exhausted {
  readonly passed: readonly Response[];
  readonly refused: Response;
}

/**
 * Sends with one new value until it is refused. A rate-limit service that is late lets requests pass uncounted, as it
 * should; on a busy machine that can happen, and then it is tried again with another value.
 */
async function exhaust(labelled: (value: string) => Test): Promise<Exhausted> {
  for (let attempt = 0; attempt < 5; attempt += 1) {
    const found = await untilRefused(labelled, randomUUID());
    if (found !== undefined) return found;
  }
  throw new Error('the rate-limit service was late every time');
}

async function untilRefused(labelled: (value: string) => Test, value: string): Promise<Exhausted | undefined> {
  const passed: Response[] = [];
  for (;;) {
    const answer = await labelled(value);
    if (answer.status !== 200) return { passed, refused: answer };
    if (remaining(answer) === undefined) return undefined;
    passed.push(answer);
    assert.ok(passed.length <= 20, 'more than two minutes hold passed');
  }
}

async function untilCounted(send: () => Test): Promise<Response> {
  for (let attempt = 0; attempt < 5; attempt += 1) {
    const answer = await send();
    if (answer.headers['ratelimit'] !== undefined) return answer;
  }
  throw new Error('no response tells of a limit');
}

function remaining({ headers }: Response): number | undefined {
  const found = /"x-gateway-test-allow";r=(\d+)/.exec(headers['ratelimit'] ?? '');
  return found === null ? undefined : Number(found[1]);
}
