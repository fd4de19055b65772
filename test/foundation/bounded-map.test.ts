/** The bounded map: what it keeps, and in which order it evicts. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { type BoundedMap, createBoundedMap } from '#foundation';

describe('createBoundedMap', () => {
  it('evicts the entry that was set or used the longest ago', () => {
    const map = createBoundedMap<string, number>(2);
    map.set('a', 1);
    map.set('b', 2);
    assert.equal(map.get('a'), 1);
    map.set('c', 3);
    assert.deepEqual([...map.values()], [2, 3], 'get does not keep an entry');
    assert.equal(map.use('b'), 2);
    map.set('d', 4);
    assert.deepEqual([...map.values()], [2, 4]);
    map.set('b', 5);
    assert.deepEqual([...map.values()], [4, 5]);
  });

  it('stays empty if it may have no entries', () => {
    const map = createBoundedMap<string, number>(0);
    map.set('a', 1);
    assert.equal(map.size(), 0);
    assert.equal(map.get('a'), undefined);
  });

  it('does what a list of its entries does that drops the first ones', () => {
    const action = fc.tuple(fc.constantFrom(...actions), fc.integer({ min: 0, max: 5 }));
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4 }), fc.array(action, { maxLength: 50 }), (entriesMax, steps) => {
        const [map, list] = [createBoundedMap<number, number>(entriesMax), createList(entriesMax)];
        for (const [value, [run, key]] of steps.entries()) {
          assert.deepEqual(run(map, key, value), run(list, key, value), `${run}`);
          assert.deepEqual([...map.values()], [...list.values()], `${run}`);
          assert.equal(map.size(), list.size());
        }
      }),
    );
  });
});

type NumberMap = BoundedMap<number, number>;

const actions: readonly ((map: NumberMap, key: number, value: number) => unknown)[] = [
  (map, key) => map.get(key),
  (map, key) => map.has(key),
  (map, key) => map.use(key),
  (map, key, value) => map.getOrCreate(key, () => value),
  (map, key, value) => map.set(key, value),
  (map, key) => map.delete(key),
];

/** The bounded map in its simplest form. */
function createList(entriesMax: number): NumberMap {
  let entries: (readonly [key: number, value: number])[] = [];
  const find = (key: number) => entries.find(([one]) => one === key)?.[1];
  const remove = (key: number) => {
    entries = entries.filter(([one]) => one !== key);
  };
  const set = (key: number, value: number) => {
    remove(key);
    entries = [...entries, [key, value] as const].slice(-entriesMax || Number.POSITIVE_INFINITY);
  };
  const use = (key: number) => {
    const value = find(key);
    if (value !== undefined) set(key, value);
    return value;
  };
  return {
    size: () => entries.length,
    has: (key) => find(key) !== undefined,
    get: find,
    use,
    getOrCreate(key, create) {
      const value = find(key) ?? create();
      set(key, value);
      return value;
    },
    set,
    delete: remove,
    values: () => entries.map(([, value]) => value),
  };
}
