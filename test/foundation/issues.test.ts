/** What zod finds wrong with a value, in plain English. */
import assert from 'node:assert/strict';
import * as z from 'zod';
import { describeIssue, statementOf } from '#foundation';

describe('describeIssue', () => {
  for (const [schema, value, text] of [
    [z.string(), 5, 'must be a string'],
    [z.int(), 1.5, 'must be a whole number'],
    [z.boolean(), 'x', 'must be true or false'],
    [z.object({}), [], 'must be an object'],
    [z.string(), undefined, 'is missing'],
    [z.strictObject({}), { a: 1 }, 'is not a known field'],
    [z.date(), 5, 'must be of another type'],
    [z.enum(['a', 'b']), 'c', 'must be "a" or "b"'],
    [z.uuid(), 'x', 'must be a UUID'],
    [z.string().regex(/^a$/), 'x', 'must match /^a$/'],
    [z.base64(), '*', 'does not have the required format'],
    [z.string().min(1), '', 'must not be empty'],
    [z.string().max(1), 'ab', 'must have at most 1 character'],
    [z.array(z.string()).min(2), [], 'must have at least 2 items'],
    [z.number().gt(5), 5, 'must be more than 5'],
    [z.number().lt(5), 5, 'must be less than 5'],
    [z.number().multipleOf(5), 6, 'must be a multiple of 5'],
    [z.union([z.string(), z.number()]), true, 'is not an accepted value'],
    [z.string().refine(() => false, 'has a custom message'), 'x', 'has a custom message'],
  ] as const)
    it(`says "${text}"`, () => {
      const [issue] = z.safeParse<z.ZodType>(schema, value, { error: describeIssue }).error?.issues ?? [];
      assert.equal(issue?.message, text);
    });
});

it('statementOf names the types as the caller does', () => {
  const { issues } = z.array(z.string()).safeParse({}).error ?? assert.fail();
  const [issue = assert.fail()] = issues;
  assert.equal(statementOf(issue, { array: 'a list' }), 'must be a list');
});
