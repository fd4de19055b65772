/** Sticky weights: which clients each part gets, and which of them move when the weights change. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Sticky } from '#config';
import type { Match, Rule } from '#routing';
import { createStickyChoice } from '../../src/routing/sticky.ts';
import { attributesOf, ruleOf, tableOf } from './rules.ts';

const names = ['a', 'b', 'c', 'd'];
const clients = Array.from({ length: 5000 }, (_, index) => `client-${index}`);

function partsOf(weights: readonly number[]) {
  const choose = createStickyChoice(weights.map((weight, index) => ({ name: names[index] ?? '', weight })));
  return clients.map(choose);
}

const weightsOf = (length: number) =>
  fc
    .array(fc.integer({ min: 0, max: 100 }), { minLength: length, maxLength: length })
    .filter((all) => all.some(Boolean));

describe('the choice of a part by a client', () => {
  for (const weights of [
    [90, 10],
    [50, 50],
    [99, 1],
    [70, 20, 10],
    [25, 25, 25, 25],
  ])
    it(`gives each part its share of the clients: ${weights.join(', ')}`, () => {
      const chosen = partsOf(weights);
      for (const [part, weight] of weights.entries()) {
        const share = chosen.filter((one) => one === part).length;
        const expected = (weight / 100) * clients.length;
        // Four standard deviations of the binomial distribution. The clients are always the same.
        const tolerance = 4 * Math.sqrt(expected * (1 - weight / 100));
        assert.ok(Math.abs(share - expected) <= tolerance, `${names[part]}: ${share} instead of ${expected}`);
      }
    });

  it('gives nobody to a part with weight 0', () => {
    assert.deepEqual(new Set(partsOf([0, 100])), new Set([1]));
  });

  it('moves as many clients as the weights require when a canary grows from 10 to 20, and none back', () => {
    const [before, after] = [partsOf([90, 10]), partsOf([80, 20])];
    const moved = before.map((part, index) => [part, after[index]]).filter(([one, other]) => one !== other);
    assert.deepEqual(new Set(moved.map(String)), new Set(['0,1']));
    assert.ok(Math.abs(moved.length / clients.length - 0.1) < 0.02, String(moved.length));
  });

  it('moves a client only to a part whose weight grew more, in proportion, than that of its own', () => {
    const pair = fc.integer({ min: 2, max: 4 }).chain((length) => fc.tuple(weightsOf(length), weightsOf(length)));
    fc.assert(
      fc.property(pair, fc.array(fc.string(), { minLength: 1, maxLength: 20 }), ([before, after], some) => {
        const choices = [before, after].map((weights) =>
          createStickyChoice(weights.map((weight, index) => ({ name: names[index] ?? '', weight }))),
        );
        for (const client of some) {
          const [from = 0, to = 0] = choices.map((choose) => choose(client));
          if (from === to) continue;
          const growth = (part: number) => (after[part] ?? 0) / (before[part] ?? 0);
          assert.ok(growth(to) >= growth(from), `${client}: ${from} to ${to}`);
        }
      }),
    );
  });

  it('does not change when the other parts are listed in another order', () => {
    const parts = [
      { name: 'a', weight: 30 },
      { name: 'b', weight: 70 },
    ];
    const [choose, chooseReversed] = [createStickyChoice(parts), createStickyChoice(parts.toReversed())];
    for (const client of clients) assert.equal(choose(client), 1 - chooseReversed(client));
  });

  it('is the same in every release, so that replicas of two releases agree', () => {
    const choose = createStickyChoice([
      { name: 'app', weight: 50 },
      { name: 'canary', weight: 50 },
    ]);
    assert.equal(['ann', 'bob', 'cas', 'dan', 'eve', 'fay', 'gil', 'hal'].map(choose).join(''), '00110100');
  });
});

describe('mappings that share requests with sticky weights', () => {
  const byHeader: Sticky = { kind: 'header', name: 'x-user' };
  const byCookie: Sticky = { kind: 'cookie', name: 'part', ttlMs: undefined };
  const tableWith = (sticky: Sticky, more: readonly Rule[] = []) =>
    tableOf([ruleOf({ name: 'app', sticky }), ruleOf({ name: 'canary', weight: 50, sticky }), ...more]);
  const nameOf = (match: Match<Rule> | undefined) => match?.route.name;
  const never = () => assert.fail('there is no choice');

  it('send the same value of the header to the same mapping, without a random number', () => {
    const { match } = tableWith(byHeader);
    const parts = new Set<string | undefined>();
    for (const client of clients.slice(0, 50)) {
      const request = attributesOf({ headers: { 'x-user': client } });
      const found = match(request, never);
      assert.deepEqual([nameOf(match(request, never)), found?.newClient], [nameOf(found), undefined]);
      parts.add(nameOf(found));
    }
    assert.deepEqual(parts, new Set(['app', 'canary']));
  });

  it('choose at random for requests without the header', () => {
    const { match } = tableWith(byHeader);
    const counts = { app: 0, canary: 0 };
    let seed = 1;
    const random = () => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed / 2_147_483_647;
    };
    for (let step = 0; step < 1000; step += 1)
      counts[nameOf(match(attributesOf(), random)) as keyof typeof counts] += 1;
    assert.ok(Math.abs(counts.canary - 500) < 80, JSON.stringify(counts));
    assert.equal(match(attributesOf(), random)?.newClient, undefined);
  });

  it('give a new client a value that keeps it where it is', () => {
    const { match } = tableWith(byCookie);
    for (let step = 0; step < 50; step += 1) {
      const first = match(attributesOf());
      assert.match(first?.newClient ?? '', /^[\da-f]{32}$/);
      const cookie = `other=1; part=${first?.newClient}; partner=2`;
      const next = match(attributesOf({ headers: { cookie } }), never);
      assert.deepEqual([nameOf(next), next?.newClient], [nameOf(first), undefined]);
    }
  });

  for (const cookie of ['', 'part', 'part=', 'Part=1', 'apart=1', 'other="part=1"'])
    it(`treat a client with the cookies ${JSON.stringify(cookie)} as new`, () => {
      assert.ok(tableWith(byCookie).match(attributesOf({ headers: { cookie } }))?.newClient !== undefined);
    });

  it('still copy their share of the requests to a shadow', () => {
    const shadow = ruleOf({ name: 'copy', shadow: true, weight: 100 });
    const found = tableWith(byHeader, [shadow]).match(attributesOf({ headers: { 'x-user': 'ann' } }), never);
    assert.equal(found?.shadow?.name, 'copy');
  });

  it('give no cookie while only one of them gets requests', () => {
    const sticky = byCookie;
    const alone = tableOf([ruleOf({ name: 'app', sticky }), ruleOf({ name: 'canary', weight: 0, sticky })]);
    assert.deepEqual([nameOf(alone.match(attributesOf())), alone.match(attributesOf())?.newClient], ['app', undefined]);
  });
});
