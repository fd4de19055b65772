/** The rules that hold for every query argument, whatever its name. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { type Fault, Problem } from '#http';
import { parseArgument, readArguments, throwFaults } from '../../src/query/arguments.ts';

function read(search: string): { readonly values: Record<string, string>; readonly faults: readonly Fault[] } {
  const faults: Fault[] = [];
  return { values: Object.fromEntries(readArguments(search, faults)), faults };
}

describe('readArguments', () => {
  const check = (search: string, expected: Readonly<Record<string, string>>) =>
    assert.deepEqual(read(search), { values: expected, faults: [] });

  const refuse = (search: string, ...expected: readonly [pointer: string, detail: RegExp][]) => {
    const { faults } = read(search);
    assert.deepEqual(
      faults.map(({ pointer }) => pointer),
      expected.map(([pointer]) => pointer),
    );
    for (const [index, [, detail]] of expected.entries()) assert.match(faults[index]?.detail ?? '', detail);
  };

  it('reads names and values with or without the question mark', () => {
    check('', {});
    check('?', {});
    check('?a=1&b=2', { a: '1', b: '2' });
    check('a=1&b=2', { a: '1', b: '2' });
  });

  it('decodes names and values, plus signs as spaces, and splits at the first equals sign', () => {
    check('?a+b=c%20d%26&q=x=y', { 'a b': 'c d&', q: 'x=y' });
    check('?q=Z%C3%BCrich', { q: 'Zürich' });
  });

  it('overlooks ampersands with nothing between them', () => check('?&a=1&&b=2&', { a: '1', b: '2' }));

  it('refuses an argument without a value, and does not hand it on', () => {
    refuse('?limit=', ['#/query/limit', /no value/]);
    refuse('?limit', ['#/query/limit', /no value/]);
    assert.deepEqual(read('?limit=').values, {});
  });

  it('refuses a repeated argument once, however often it is repeated, and hands none of its values on', () => {
    refuse('?a=1&a=2&a=3&b=1', ['#/query/a', /more than once/]);
    assert.deepEqual(read('?a=1&a=2&b=1').values, { b: '1' });
  });

  it('refuses broken percent-encoding, bare bytes and NUL', () => {
    for (const part of ['%zz=1', 'a=%E0%A4', 'a=%', 'a=ü', 'a=b c', 'a=%00', '\u{d800}=1']) {
      refuse(`?${part}`, ['#/query', /percent-encoded/]);
    }
  });

  it('names every bad argument at once, in order', () => {
    refuse('?a=&%zz&b=1&b=2', ['#/query/a', /no value/], ['#/query', /"%zz"/], ['#/query/b', /more than once/]);
  });

  it('treats the names of object members as names', () => {
    const faults: Fault[] = [];
    const values = readArguments('?__proto__=1&constructor=2', faults);
    assert.deepEqual(
      [...values],
      [
        ['__proto__', '1'],
        ['constructor', '2'],
      ],
    );
  });

  it('refuses a search of more than 4096 characters whole', () => {
    refuse(`?a=${'x'.repeat(4096)}`, ['#/query', /4096/]);
    assert.equal(read(`a=${'x'.repeat(4094)}`).faults.length, 0);
  });

  it('refuses more than 32 arguments whole', () => {
    const search = (count: number) => Array.from({ length: count }, (_, index) => `a${index}=1`).join('&');
    refuse(search(33), ['#/query', /32/]);
    assert.equal(read(search(32)).faults.length, 0);
  });

  it('survives any text and answers with values or faults', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (search) => {
        const { values, faults } = read(search);
        for (const value of Object.values(values)) assert.notEqual(value, '');
        for (const { pointer } of faults) assert.ok(pointer.startsWith('#/query'));
      }),
    );
  });
});

describe('parseArgument', () => {
  it('finds again whatever URLSearchParams wrote', () => {
    const text = fc.string({ unit: 'grapheme' }).filter((value) => !value.includes('\0'));
    fc.assert(
      fc.property(text, text, (name, value) => {
        assert.deepEqual(parseArgument(new URLSearchParams([[name, value]]).toString()), { name, value });
      }),
    );
  });
});

describe('throwFaults', () => {
  it('throws one problem with all faults, and nothing when there are none', () => {
    throwFaults([]);
    const faults = [{ pointer: '#/query/a', detail: 'x' }];
    assert.throws(
      () => throwFaults(faults),
      (error) => error instanceof Problem && error.slug === 'bad-argument' && error.errors === faults,
    );
  });
});
