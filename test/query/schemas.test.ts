/** The schemas say what the language does: the same names, the same bounds, the same fields. */
import assert from 'node:assert/strict';
import { z } from 'zod';
import { createListParser, itemArguments, itemSchema, type ListOptions, toPublicItem } from '#query';
import { createHotelView, type Hotel, hotel, place } from './hotel-view.ts';

const view = createHotelView();
const extra = z.object({ near: z.string().optional() });

/** What a refusal says that it knows. */
function knownTo(options: ListOptions<Hotel, { near?: string | undefined }>): string[] {
  try {
    createListParser(view, options)('?nonsense=1', place);
  } catch (problem) {
    const [{ detail }] = (problem as { errors: [{ detail: string }] }).errors;
    return detail.replace(/^.*known: /, '').split(', ');
  }
  throw new Error('it was not refused');
}

describe('the schema of a list', () => {
  for (const options of [{}, { searchable: ['name' as const], extra }]) {
    it(`names each argument that the language knows, and no other: ${Object.keys(options).join() || 'plain'}`, () => {
      const { shape } = createListParser(view, options).schema();
      assert.deepEqual(Object.keys(shape).sort(), knownTo(options).sort());
    });
  }

  it('has the bounds and the defaults of the language', () => {
    const language = createListParser(view, { searchable: ['name'] });
    const schema = language.schema();
    const { limit, offset, total } = schema.parse({}) as Record<string, unknown>;
    const plain = language('', place);
    assert.deepEqual({ limit, offset, total }, { limit: plain.limit, offset: plain.offset, total: true });
    const agree = (name: string, value: string | number) => {
      const isDocumented = schema.safeParse({ [name]: value }).success;
      const ask = () => language(`?${name}=${value}`, place);
      if (isDocumented) assert.doesNotThrow(ask, `${name}=${value}`);
      else assert.throws(ask, { slug: 'bad-argument' }, `${name}=${value}`);
      return isDocumented;
    };
    assert.deepEqual(
      [0, 1, 101].map((value) => agree('limit', value)),
      [false, true, true],
    );
    assert.deepEqual(
      [-1, 0, Number.MAX_SAFE_INTEGER].map((value) => agree('offset', value)),
      [false, true, true],
    );
    assert.deepEqual(
      [200, 201].map((length) => agree('q', 'x'.repeat(length))),
      [true, false],
    );
  });

  it('sorts by what the language sorts by', () => {
    const language = createListParser(view);
    const { sort } = language.schema().shape as { sort: z.ZodType };
    for (const term of ['city', '-city']) {
      assert.ok(sort.safeParse([term]).success);
      assert.doesNotThrow(() => language(`?sort=${term}`, place));
    }
    assert.ok(!sort.safeParse(['town']).success);
  });
});

describe('the schema of an item', () => {
  it('is met by what the view shows, and by nothing less', () => {
    const whole = toPublicItem(view, hotel, undefined, place);
    assert.deepEqual(itemSchema(view).parse(whole), whole);
    assert.ok(!itemSchema(view).safeParse({ ...whole, id: undefined }).success);
  });

  it('has arguments: the fields, and what its service adds', () => {
    const { shape } = itemArguments(view, extra);
    assert.deepEqual(Object.keys(shape), ['near', 'fields']);
    const { fields } = shape as { fields: z.ZodType };
    assert.ok(fields.safeParse(['city', '*']).success);
    assert.ok(!fields.safeParse(['town']).success);
  });
});
