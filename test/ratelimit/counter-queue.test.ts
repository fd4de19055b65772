/** A row of counters, against an array that does the same. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { type Counter, createCounterQueue } from '../../src/ratelimit/counter-queue.ts';

describe('a counter queue', () => {
  it('keeps the order of arrival, whoever leaves in between', () => {
    fc.assert(
      fc.property(fc.array(fc.option(fc.nat(20)), { maxLength: 60 }), (steps) => {
        const queue = createCounterQueue();
        const model: Counter[] = [];
        steps.forEach((position, index) => {
          if (position === null) {
            const counter = { key: String(index), count: 0, before: 0, rank: 0, previous: undefined, next: undefined };
            queue.append(counter);
            model.push(counter);
          } else for (const counter of model.splice(position, 1)) queue.remove(counter);
          assert.equal(queue.size(), model.length);
          assert.equal(queue.oldest(), model[0]);
        });
      }),
    );
  });
});
