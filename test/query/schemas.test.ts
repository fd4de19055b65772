/** The documented schemas, which must agree with the parsers on names, bounds and fields. */
import assert from 'node:assert/strict';
import { z } from 'zod';
import { createListParser, itemArguments, itemSchema, type ListOptions, toPublicItem } from '#query';
import { baseUrl, createHotelView, type Hotel, hotel } from './hotel-view.ts';

const view = createHotelView();
const extra = z.object({ near: z.string().optional() });

/** Returns the known arguments, taken from the error for an unknown one. */
function knownTo(options: ListOptions<Hotel, { near?: string | undefined }>): string[] {
  try {
    createListParser(view, options)('?nonsense=1', baseUrl);
  } catch (problem) {
    const [{ detail }] = (problem as { errors: [{ detail: string }] }).errors;
    return detail.replace(/^.*known: /, '').split(', ');
  }
  throw new Error('the argument was not rejected');
}

describe('the schema of a list', () => {
  for (const options of [{}, { searchable: ['name' as const], extra }]) {
    it(`has exactly the arguments that the parser knows: ${Object.keys(options).join() || 'plain'}`, () => {
      const { shape } = createListParser(view, options).schema();
      assert.deepEqual(Object.keys(shape).sort(), knownTo(options).sort());
    });
  }

  it('has the same bounds and defaults as the parser', () => {
    const parser = createListParser(view, { searchable: ['name'] });
    const schema = parser.schema();
    const { limit, total } = schema.parse({}) as Record<string, unknown>;
    const plain = parser('', baseUrl);
    assert.deepEqual({ limit, total, offset: 0 }, { limit: plain.limit, total: true, offset: plain.offset });
    assert.match(JSON.stringify((schema.shape['offset'] as z.ZodType).meta()), /to skip, 0 by default\./);
    const agree = (name: string, value: string | number) => {
      const isDocumented = schema.safeParse({ [name]: value }).success;
      const ask = () => parser(`?${name}=${value}`, baseUrl);
      if (isDocumented) assert.doesNotThrow(ask, `${name}=${value}`);
      else assert.throws(ask, { slug: 'bad-argument' }, `${name}=${value}`);
      return isDocumented;
    };
    for (const [name, value, isValid] of [
      ['limit', 0, false],
      ['limit', 1, true],
      ['limit', 101, true],
      ['offset', -1, false],
      ['offset', 0, true],
      ['offset', Number.MAX_SAFE_INTEGER, true],
      ['q', 'x'.repeat(200), true],
      ['q', 'x'.repeat(201), false],
    ] as const)
      assert.equal(agree(name, value), isValid, `${name}=${value}`);
  });

  it('names the fields that `q` searches', () => {
    const { q } = createListParser(view, { searchable: ['name', 'town'] }).schema().shape as { q: z.ZodType };
    assert.match(JSON.stringify(q.meta()), /in any of `name`, `city`\./);
  });

  it('has the default order, and the field that orders equal items', () => {
    const parser = createListParser(view, { defaultSort: [{ column: 'town', descending: true }] });
    const { sort } = parser.schema().shape as { sort: z.ZodType };
    assert.match(JSON.stringify(sort.meta()), /By default `-city,id`\. Equal items are sorted by `id`\./);
    assert.deepEqual(parser('?sort=-city,id', baseUrl).sort, parser('', baseUrl).sort);
  });

  it('has the same sort terms as the parser', () => {
    const parser = createListParser(view);
    const { sort } = parser.schema().shape as { sort: z.ZodType };
    for (const term of ['city', '-city']) {
      assert.ok(sort.safeParse([term]).success);
      assert.doesNotThrow(() => parser(`?sort=${term}`, baseUrl));
    }
    assert.ok(!sort.safeParse(['town']).success);
  });
});

describe('the schema of an item', () => {
  it('accepts the items that the view shows, and requires all fields', () => {
    const whole = toPublicItem(view, hotel, undefined, baseUrl);
    assert.deepEqual(itemSchema(view).parse(whole), whole);
    assert.ok(!itemSchema(view).safeParse({ ...whole, id: undefined }).success);
  });

  it('has `fields` and the extra arguments as its arguments', () => {
    const { shape } = itemArguments(view, extra);
    assert.deepEqual(Object.keys(shape), ['near', 'fields']);
    const { fields } = shape as { fields: z.ZodType };
    assert.ok(fields.safeParse(['city', '*']).success);
    assert.ok(!fields.safeParse(['town']).success);
  });
});
