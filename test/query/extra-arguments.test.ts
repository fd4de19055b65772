/** Arguments that a service adds are read together, beside those of every list and item. */
import assert from 'node:assert/strict';
import { z } from 'zod';
import { createExtraArguments, createListParser, parseItemQuery } from '#query';
import { createHotelView, place } from './hotel-view.ts';

const view = createHotelView();

const own = z
  .object({
    check_in: z.iso.date().optional(),
    check_out: z.iso.date().optional(),
    guests: z.string().regex(/^\d+$/, 'must be a whole number').transform(Number).optional(),
  })
  .superRefine(({ check_in, check_out }, context) => {
    if ((check_in === undefined) === (check_out === undefined)) return;
    const path = check_in === undefined ? ['check_in'] : ['check_out'];
    context.addIssue({ code: 'custom', path, message: 'is missing beside the other' });
  });

const parseList = createListParser(view, { extra: own });
const reader = createExtraArguments(own);

const readings = {
  'a list': (search: string) => parseList(search, place).extra,
  'an item': (search: string) => parseItemQuery(view, search, reader).extra,
};

for (const [what, read] of Object.entries(readings)) {
  describe(`the extra arguments of ${what}`, () => {
    it('are what the schema makes of them', () => {
      assert.deepEqual(read('?check_in=2030-01-01&check_out=2030-01-03&guests=2&fields=id'), {
        check_in: '2030-01-01',
        check_out: '2030-01-03',
        guests: 2,
      });
    });

    it('are what the schema makes of nothing when there are none', () => {
      assert.deepEqual([read(''), read('?'), read('?fields=id')], [{}, {}, {}]);
    });

    it('are refused along with all others, each by its name', () => {
      assert.throws(
        () => read('?check_in=soon&check_out=2030-01-02&guests=x&colour=red'),
        ({ errors }: { errors: { pointer: string }[] }) => {
          const pointers = errors.map(({ pointer }) => pointer).sort();
          assert.deepEqual(pointers, ['#/query/check_in', '#/query/colour', '#/query/guests']);
          return true;
        },
      );
    });

    it('are compared with each other', () => {
      assert.throws(() => read('?check_in=2030-01-01'), {
        errors: [{ pointer: '#/query/check_out', detail: 'is missing beside the other' }],
      });
    });

    it('are named among the known ones', () => {
      assert.throws(
        () => read('?colour=red'),
        ({ errors }: { errors: { detail: string }[] }) => {
          assert.match(errors[0]?.detail ?? '', /check_in, check_out, guests$/);
          return true;
        },
      );
    });
  });
}

describe('createListLanguage', () => {
  it('refuses at start an argument that has the name of another', () => {
    for (const name of ['city', 'limit', 'after']) {
      assert.throws(() => createListParser(view, { extra: z.object({ [name]: z.string().optional() }) }), TypeError);
    }
  });

  it('refuses at start arguments that are not optional', () => {
    assert.throws(() => createListParser(view, { extra: z.object({ day: z.string() }) }));
  });
});
