/** Mappings with the same match: requests are split by weight, and a shadow receives copies. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Rule } from '#routing';
import { attributesOf, ruleOf, tableOf } from './rules.ts';

const names = ['a', 'b', 'c', 'd', 'e'];
const members = (...weights: readonly (number | undefined)[]) =>
  weights.map((weight, index) => ruleOf({ name: names[index] ?? '', weight }));

/** Counts how many of 1000 requests each mapping receives when random numbers are evenly spread over [0, 1). */
function counted(rules: readonly Rule[]): Record<string, number> {
  const { match } = tableOf(rules);
  const counts: Record<string, number> = {};
  for (let step = 0; step < 1000; step += 1) {
    const name = match(attributesOf(), () => step / 1000)?.route.name ?? 'none';
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

describe('splitting requests by weight', () => {
  function check(title: string, weights: readonly (number | undefined)[], expected: Record<string, number>) {
    it(title, () => assert.deepEqual(counted(members(...weights)), expected));
  }

  check('splits the remainder between members without a weight', [50, undefined, undefined], {
    a: 500,
    b: 250,
    c: 250,
  });
  check('sends no requests to a member with weight 0', [0, 100, 0], { b: 1000 });
  check('scales weights that do not add up to 100', [10, 30], { a: 250, b: 750 });
  check('scales weights that add up to more than 100', [100, 100, undefined], { a: 500, b: 500 });
  check('sends all requests to a single mapping, whatever its weight', [20], { a: 1000 });
  check('splits evenly when all weights are 0', [0, 0], { a: 500, b: 500 });
  check('sends all requests to the first mapping by name when none has a weight', [undefined, undefined], {
    a: 1000,
  });

  it('splits between mappings whose matches are equivalent but spelt differently', () => {
    const asks = (name: string) => ({ name, match: { kind: 'present' as const } });
    const pairs: readonly (readonly [Partial<Rule>, Partial<Rule>])[] = [
      [{ headers: [asks('x-a'), asks('x-b')] }, { headers: [asks('x-b'), asks('x-a')] }],
      [
        { prefix: '/V1/Hotels', caseSensitive: false },
        { prefix: '/v1/hotels', caseSensitive: false },
      ],
      [
        { prefix: '/v1/.*', prefixMatch: 'regex', caseSensitive: false },
        { prefix: '/v1/.*', prefixMatch: 'regex' },
      ],
    ];
    for (const [one, other] of pairs) {
      const rules = [ruleOf({ ...one, name: 'a', weight: 50 }), ruleOf({ ...other, name: 'b', weight: 50 })];
      const { match } = tableOf(rules);
      const request = attributesOf({ headers: { 'x-a': '', 'x-b': '' } });
      assert.deepEqual(
        [0, 0.9].map((number) => match(request, () => number)?.route.name),
        ['a', 'b'],
      );
    }
  });

  it('sends nothing to a built-in route with the same match as a mapping', () => {
    const internal = ruleOf({ name: 'a', internal: true, weight: 50 });
    assert.deepEqual(counted([internal, ruleOf({ name: 'b', weight: 50 })]), { b: 1000 });
  });

  it('draws a random number only when there is a choice', () => {
    const never = () => assert.fail('there is no choice');
    const whole = ruleOf({ name: 's', shadow: true });
    for (const rules of [members(undefined), members(100, undefined), [...members(7), whole]])
      assert.equal(tableOf(rules).match(attributesOf(), never)?.route.name, 'a');
  });

  it('sends each member exactly its share, for any weights', () => {
    const percents = fc
      .array(fc.integer({ min: 0, max: 100 }), { minLength: 1, maxLength: 4 })
      .filter((weights) => weights.reduce((a, b) => a + b) <= 100);
    fc.assert(
      fc.property(percents, (weights) => {
        const counts = counted(members(...weights, undefined));
        const rest = 100 - weights.reduce((a, b) => a + b);
        for (const [index, weight] of [...weights, rest].entries())
          assert.equal(counts[names[index] ?? ''] ?? 0, weight * 10);
      }),
    );
  });
});

describe('shadowing', () => {
  const shadowed = (weight: number | undefined, ...others: readonly Rule[]) =>
    tableOf([ruleOf({ name: 's', shadow: true, weight }), ...others]);

  it('copies every request when the shadow has no weight, and never routes one to the shadow', () => {
    const match = shadowed(undefined, ...members(undefined)).match(attributesOf());
    assert.deepEqual([match?.route.name, match?.shadow?.name], ['a', 's']);
  });

  it('leaves requests to a shorter prefix when there is no mapping with the match of the shadow', () => {
    const root = ruleOf({ name: 'root', prefix: '/' });
    assert.deepEqual(shadowed(undefined, root).match(attributesOf()), { route: root, shadow: undefined });
  });

  it('copies the percentage that the weight of the shadow sets', () => {
    const { match } = shadowed(25, ...members(undefined));
    const copies = Array.from({ length: 1000 }, (_, step) => match(attributesOf(), () => step / 1000)?.shadow);
    assert.equal(copies.filter((shadow) => shadow !== undefined).length, 250);
    assert.equal(shadowed(0, ...members(undefined)).match(attributesOf(), () => 0)?.shadow, undefined);
  });

  it('copies the requests of each member of a canary', () => {
    const { match } = shadowed(undefined, ...members(50, 50));
    const matches = [0, 0.9].map((number) => match(attributesOf(), () => number));
    assert.deepEqual(
      matches.map((one) => `${one?.route.name} ${one?.shadow?.name}`),
      ['a s', 'b s'],
    );
  });
});
