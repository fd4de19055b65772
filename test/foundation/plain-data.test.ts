/** Plain data: which values are maps, and equal values as the same text. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { isMap, sortedJson } from '#foundation';

it('isMap accepts objects with any prototype, and no list, null or text', () => {
  const values = [{}, { a: 1 }, Object.create(null), new Error('x'), [], null, undefined, 'a', 1, () => {}];
  assert.deepEqual(values.map(isMap), [true, true, true, true, ...Array(6).fill(false)]);
});

describe('sortedJson', () => {
  it('has the keys of each map in order', () => {
    assert.equal(sortedJson({ b: [{ d: 1, c: 'é' }, null], a: {} }), '{"a":{},"b":[{"c":"é","d":1},null]}');
  });

  it('is the same for values with the same members, in whatever order, and parses to the value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = sortedJson(value);
        assert.equal(sortedJson(reversed(value)), text);
        assert.equal(JSON.stringify(JSON.parse(text)), text);
        assert.deepEqual(JSON.parse(text), JSON.parse(JSON.stringify(value)));
      }),
    );
  });
});

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (!isMap(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .map(([name, member]) => [name, reversed(member)])
      .reverse(),
  );
}
