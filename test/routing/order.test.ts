/** The order of trial: it does not depend on the order of the files, and follows the table in README. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { createTable, type Rule } from '#routing';
import { compareRanked, rankRule } from '../../src/routing/order.ts';
import { modelLead } from './model.ts';
import { ruleList, ruleOf } from './rules.ts';

const compare = (a: Rule, b: Rule) => Math.sign(compareRanked(rankRule(a), rankRule(b)));

describe('the order of trial', () => {
  /** `names` in the order of trial, handed in backwards. */
  function check(title: string, ...rules: readonly Partial<Rule>[]) {
    it(title, () => {
      const named = rules.map((fields, index) => ruleOf({ ...fields, name: `${'zyxwvut'[index]}` }));
      assert.deepEqual(createTable(named.toReversed()).routes, named);
    });
  }

  const exact = (value: string) => ({ kind: 'exact' as const, value });
  const regex = (pattern: string) => ({ kind: 'regex' as const, pattern });
  const present = { kind: 'present' as const };
  const header = (name: string, match: Rule['headers'][number]['match']) => ({ name, match });

  check('puts the higher precedence before everything else', { prefix: '/', precedence: 1 }, {}, { precedence: -1 });
  check('puts the longer prefix before more conditions', { prefix: '/v1/a' }, { prefix: '/v1', method: exact('GET') });
  check(
    'takes the length of a regex from its source, as Ambassador does',
    { prefix: '/v1/hotels/abc' },
    { prefix: '/v1/[a-z]+/x', prefixMatch: 'regex' },
    { prefix: '/v1/hotels' },
  );
  check(
    'puts an exact prefix before a regex, and that before a prefix of segments',
    { prefixMatch: 'exact', caseSensitive: false },
    { prefixMatch: 'regex' },
    {},
    { caseSensitive: false },
  );
  check(
    'puts a mapping before a route of the server, however many conditions that has',
    {},
    { internal: true, prefixMatch: 'exact', method: exact('GET') },
    { internal: true },
  );
  check(
    'puts an exact host first, then longer wildcards, then a regex',
    { host: exact('a.b') },
    { host: { kind: 'suffix', value: '.long.example' } },
    { host: { kind: 'prefix', value: 'a.' } },
    { host: regex('a very long pattern') },
    { method: exact('GET') },
  );
  check(
    'puts a method before headers',
    { method: exact('GET') },
    { method: regex('GET') },
    { headers: [header('a', exact('1'))] },
  );
  check(
    'puts more headers first, then more exact ones, then query parameters',
    { headers: [header('a', present), header('b', present)] },
    { headers: [header('a', exact('1'))], queryParameters: [header('a', present)] },
    { headers: [header('a', exact('1'))] },
    { headers: [header('a', regex('1'))] },
    { headers: [header('a', present)] },
    { queryParameters: [header('a', exact('1')), header('b', present)] },
    { queryParameters: [header('a', exact('1'))] },
  );

  it('goes by name among mappings with the same match', () => {
    const named = ['a', 'b', 'c'].map((name) => ruleOf({ name, weight: 30 }));
    assert.deepEqual(createTable(named.toReversed()).routes, named);
  });

  it('does not depend on the order in which the rules come', () => {
    const shuffled = ruleList.chain((rules) =>
      fc.tuple(fc.constant(rules), fc.shuffledSubarray(rules, { minLength: rules.length })),
    );
    fc.assert(
      fc.property(shuffled, ([rules, others]) =>
        assert.deepEqual(createTable(rules).routes, createTable(others).routes),
      ),
    );
  });

  it('is total: of two rules the same one goes first in either direction', () => {
    fc.assert(
      fc.property(ruleList, (rules) => {
        for (const [a, b] of rules.flatMap((one) => rules.map((other) => [one, other] as const))) {
          assert.equal(compare(a, b), -compare(b, a) || 0);
          assert.equal(compare(a, b) === 0, a === b);
        }
      }),
    );
  });

  it('is transitive', () => {
    fc.assert(
      fc.property(ruleList, (rules) => {
        const ahead = (one: Rule) => rules.filter((other) => compare(other, one) < 0);
        for (const rule of rules)
          for (const earlier of ahead(rule))
            assert.deepEqual(
              ahead(earlier).filter((one) => compare(one, rule) >= 0),
              [],
            );
      }),
    );
  });

  it('follows the table in README', () => {
    fc.assert(
      fc.property(ruleList, (rules) => {
        const { routes } = createTable(rules);
        for (const [index, later] of routes.entries())
          for (const earlier of routes.slice(0, index)) assert.ok(modelLead(earlier, later) >= 0);
      }),
    );
  });
});
