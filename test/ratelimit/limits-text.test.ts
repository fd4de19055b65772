/** The limits in force, as people read them. */
import assert from 'node:assert/strict';
import { formatLimits } from '../../src/ratelimit/limits-text.ts';
import { domain, limit, node, unlimited } from '../support/limits.ts';

describe('limits as text', () => {
  function check(name: string, descriptor: ReturnType<typeof node>, ...lines: readonly string[]): void {
    it(name, () => assert.equal(formatLimits([domain('d', descriptor)]), lines.map((line) => `${line}\n`).join('')));
  }

  check(
    'have a line each',
    node('k=v', limit(10, 'hour')),
    'd.k_v: unit=HOUR requests_per_unit=10, shadow_mode: false',
  );

  check('have none for a descriptor without one', node('k'));

  check(
    'name what they stand below',
    node('a', limit(1), node('b=x', limit(2))),
    'd.a: unit=MINUTE requests_per_unit=1, shadow_mode: false',
    'd.a.b_x: unit=MINUTE requests_per_unit=2, shadow_mode: false',
  );

  check('say that they are none', node('k', unlimited), 'd.k: unlimited, shadow_mode: false');

  check(
    'say all that makes them special',
    {
      ...node('k=*'),
      shareThreshold: true,
      limits: [
        limit(5, 'second', {
          unitMultiplier: 30,
          name: 'burst',
          replaces: ['a', 'b'],
          algorithm: 'token_bucket',
          burst: 9,
          shadowMode: true,
        }),
        limit(7),
      ],
    },
    'd.k_*: unit=SECOND unit_multiplier=30 requests_per_unit=5, name: burst, replaces: a b, algorithm: token_bucket, burst: 9, shadow_mode: true, share_threshold: true',
    'd.k_*: unit=MINUTE requests_per_unit=7, shadow_mode: false, share_threshold: true',
  );

  check(
    'keep a line break in a value from passing for another limit',
    node('k=v\nd.x: unlimited', limit(1)),
    'd.k_v d.x: unlimited: unit=MINUTE requests_per_unit=1, shadow_mode: false',
  );
});
