/** The text and the code of whatever was thrown. */
import assert from 'node:assert/strict';
import { codeOf, messageOf } from '#foundation';

const coded = (message: string, code: unknown) => Object.assign(new Error(message), { code });

describe('codeOf', () => {
  for (const [what, thrown, expected] of [
    ['an error of the system', coded('no such file', 'ENOENT'), 'ENOENT'],
    ['a number', { code: 7 }, '7'],
    ['an error without a code', new Error('x'), ''],
    ['an error whose code is undefined', coded('x', undefined), ''],
    ['a text', 'ENOENT', ''],
    ['nothing', undefined, ''],
    ['null', null, ''],
  ] as const)
    it(`is '${expected}' for ${what}`, () => assert.equal(codeOf(thrown), expected));
});

describe('messageOf', () => {
  const refused = [coded('connect ECONNREFUSED ::1:80', 'ECONNREFUSED'), coded('', 'EHOSTUNREACH')];
  for (const [what, thrown, expected] of [
    ['an error', new Error('the disk is full'), 'the disk is full'],
    ['an error that has only a code', coded('', 'EPIPE'), 'EPIPE'],
    ['an error that has only a name', new TypeError(''), 'TypeError'],
    ['several errors', new AggregateError(refused), 'connect ECONNREFUSED ::1:80, EHOSTUNREACH'],
    ['several errors with a message', new AggregateError(refused, 'all failed'), 'all failed'],
    ['a text', 'no', 'no'],
    ['nothing', undefined, 'undefined'],
  ] as const)
    it(`is '${expected}' for ${what}`, () => assert.equal(messageOf(thrown), expected));
});
