/** The rules for all query arguments, and the extra arguments of a service. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { z } from 'zod';
import type { Fault, Problem } from '#http';
import { createExtraArguments, createListParser, parseItemQuery } from '#query';
import { parseArgument, readArguments } from '../../src/query/arguments.ts';
import { anyCharacter } from '../support/any-character.ts';
import { baseUrl, createHotelView } from './hotel-view.ts';

function read(search: string): { readonly values: Record<string, string>; readonly faults: readonly Fault[] } {
  const faults: Fault[] = [];
  return { values: Object.fromEntries(readArguments(search, faults)), faults };
}

describe('readArguments', () => {
  const check = (search: string, expected: Readonly<Record<string, string>>) =>
    assert.deepEqual(read(search), { values: expected, faults: [] });

  const refuse = (search: string, ...expected: readonly [parameter: string | undefined, detail: RegExp][]) => {
    const { faults } = read(search);
    assert.deepEqual(
      faults.map(({ parameter }) => parameter),
      expected.map(([parameter]) => parameter),
    );
    for (const [index, [, detail]] of expected.entries()) assert.match(faults[index]?.detail ?? '', detail);
  };

  it('decodes names and values, with or without the question mark', () => {
    check('', {});
    check('?', {});
    check('a=1&b=2', { a: '1', b: '2' });
    check('?&a=1&&b=2&', { a: '1', b: '2' });
    check('?a+b=c%20d%26&q=x=y', { 'a b': 'c d&', q: 'x=y' });
    check('?q=Z%C3%BCrich', { q: 'Zürich' });
  });

  it('reports an empty or repeated argument once, and does not return its value', () => {
    refuse('?limit', ['limit', /no value/]);
    refuse('?limit=', ['limit', /no value/]);
    refuse('?a=1&a=2&a=3&b=1', ['a', /more than once/]);
    assert.deepEqual(read('?limit=&a=1&a=2&b=1').values, { b: '1' });
  });

  it('rejects invalid percent-encoding, unencoded bytes and NUL', () => {
    for (const part of ['%zz=1', 'a=%E0%A4', 'a=%', 'a=ü', 'a=b c', 'a=%00', '\u{d800}=1'])
      refuse(`?${part}`, [undefined, /percent-encoded/]);
  });

  it('reports all invalid arguments together, in order', () => {
    refuse('?a=&%zz&b=1&b=2', ['a', /no value/], [undefined, /"%zz"/], ['b', /more than once/]);
  });

  it('accepts names of built-in object members like any other name', () => {
    assert.deepEqual(Object.entries(read('?__proto__=1&constructor=2').values), [
      ['__proto__', '1'],
      ['constructor', '2'],
    ]);
  });

  it('rejects a query string of more than 4096 characters or 32 arguments as a whole', () => {
    const search = (count: number) => Array.from({ length: count }, (_, index) => `a${index}=1`).join('&');
    for (const mark of ['', '?'])
      refuse(`${mark}a=${'x'.repeat(4095)}`, [undefined, /^The query is longer than 4096 characters\.$/]);
    refuse(search(33), [undefined, /^The query has more than 32 arguments\.$/]);
    for (const fits of [`a=${'x'.repeat(4094)}`, `?a=${'x'.repeat(4094)}`, search(32)])
      assert.deepEqual(read(fits).faults, []);
  });

  it('returns values or faults for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter }), (search) => {
        const { values, faults } = read(search);
        for (const value of Object.values(values)) assert.notEqual(value, '');
        for (const { pointer } of faults) assert.equal(pointer, undefined);
      }),
    );
  });
});

describe('parseArgument', () => {
  it('parses the output of URLSearchParams', () => {
    const text = fc.string({ unit: anyCharacter }).filter((value) => !value.includes('\0'));
    fc.assert(
      fc.property(text, text, (name, value) => {
        assert.deepEqual(parseArgument(new URLSearchParams([[name, value]]).toString()), { name, value });
      }),
    );
  });
});

const view = createHotelView();

const extra = z
  .object({
    check_in: z.iso.date().optional(),
    check_out: z.iso.date().optional(),
    guests: z.string().regex(/^\d+$/, 'must be a whole number').transform(Number).optional(),
  })
  .superRefine(({ check_in, check_out }, context) => {
    if ((check_in === undefined) === (check_out === undefined)) return;
    const path = check_in === undefined ? ['check_in'] : ['check_out'];
    context.addIssue({ code: 'custom', path, message: 'is required with the other date' });
  });

const parseList = createListParser(view, { extra });
const reader = createExtraArguments(extra);

const parsers = {
  'a list': (search: string) => parseList(search, baseUrl).extra,
  'an item': (search: string) => parseItemQuery(view, search, reader).extra,
};

for (const [what, read] of Object.entries(parsers))
  describe(`the extra arguments of ${what}`, () => {
    const check = (search: string, expected: object) => assert.deepEqual(read(search), expected, search);

    const refuse = (search: string, ...expected: readonly Fault[]) =>
      assert.throws(
        () => read(search),
        ({ errors = [] }: Problem) => {
          assert.deepEqual(
            errors.map(({ parameter }) => parameter),
            expected.map(({ parameter }) => parameter),
          );
          for (const [index, { detail }] of expected.entries()) assert.ok(errors[index]?.detail.endsWith(detail));
          return true;
        },
      );

    it('are parsed by their schema', () => {
      const stay = { check_in: '2030-01-01', check_out: '2030-01-03' };
      check('?check_in=2030-01-01&check_out=2030-01-03&guests=2&fields=id', { ...stay, guests: 2 });
      for (const search of ['', '?', '?fields=id']) check(search, {});
    });

    it('are reported together with other invalid arguments, and listed as known', () => {
      const unknown = { parameter: 'colour', detail: 'check_in, check_out, guests' };
      const invalid = ['check_in', 'guests'].map((name) => ({ parameter: name, detail: '' }));
      refuse('?check_in=soon&check_out=2030-01-02&guests=x&colour=red', unknown, ...invalid);
      refuse('?check_in=2030-01-01', { parameter: 'check_out', detail: 'is required with the other date' });
    });
  });

describe('createListParser', () => {
  it('throws for an extra argument that is required, or has the name of another argument', () => {
    for (const name of ['city', 'limit', 'after'])
      assert.throws(() => createListParser(view, { extra: z.object({ [name]: z.string().optional() }) }), TypeError);
    assert.throws(() => createListParser(view, { extra: z.object({ day: z.string() }) }));
  });
});
