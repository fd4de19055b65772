/** Text of an argument becomes a value only if it is written as that value is written. */
import assert from 'node:assert/strict';
import { z } from 'zod';
import { createScalarReader, parseWholeNumber, type Scalar } from '../../src/query/view.ts';

describe('createScalarReader', () => {
  const check = (schema: z.ZodType<Scalar>, text: string, expected: Scalar) =>
    assert.deepEqual(createScalarReader(schema)(text), { ok: true, value: expected });

  const refuse = (schema: z.ZodType<Scalar>, text: string, detail: RegExp) => {
    const reading = createScalarReader(schema)(text);
    assert.ok(!reading.ok, `took ${text}`);
    assert.match(reading.detail, detail);
  };

  it('gives text as it stands, checked by the schema', () => {
    check(z.string(), ' 1 ', ' 1 ');
    check(z.enum(['pending', 'confirmed']), 'pending', 'pending');
    check(z.uuid().toLowerCase(), '0B6F1C52-7D7E-4A57-9D43-5F0F6C1D2A01', '0b6f1c52-7d7e-4a57-9d43-5f0f6c1d2a01');
    refuse(z.uuid(), '12', /UUID/);
  });

  it('says which values an enum has', () => {
    refuse(z.enum(['pending', 'confirmed']), 'lost', /"pending"\|"confirmed"/);
  });

  it('reads numbers without blanks, exponents, signs of plus or hexadecimals', () => {
    check(z.int32(), '-12', -12);
    check(z.number(), '1.50', 1.5);
    for (const text of ['1e3', ' 1', '+1', '0x10', '1.', '.5', '', 'NaN', 'Infinity', '1.5']) {
      refuse(z.int32(), text, /must be an integer/);
    }
    refuse(z.number(), '1e3', /must be a number/);
  });

  it('refuses numbers that a column or JavaScript cannot hold', () => {
    refuse(z.int32(), '2147483648', /Too big/);
    refuse(z.number(), '9007199254740993', /must be a number/);
  });

  it('reads true and false and no other spelling of them', () => {
    check(z.boolean(), 'true', true);
    check(z.boolean(), 'false', false);
    for (const text of ['1', 'TRUE', 'yes', '']) refuse(z.boolean(), text, /true or false/);
  });

  it('sees through nullable and optional checks to the plain type', () => {
    check(z.int32().nullable(), '7', 7);
    check(z.string().min(1).max(3), 'abc', 'abc');
  });

  it('refuses at once a schema that no scalar fits', () => {
    assert.throws(() => createScalarReader(z.null()), TypeError);
  });
});

describe('parseWholeNumber', () => {
  const check = (text: string, expected: number | undefined) => assert.equal(parseWholeNumber(text), expected);

  it('takes digits alone', () => {
    check('0', 0);
    check('007', 7);
    check('9007199254740991', Number.MAX_SAFE_INTEGER);
    for (const text of ['', '-1', '+1', '1.0', '1e2', ' 1', '0x1', '١']) check(text, undefined);
  });
});
