/** What a client reads about a value that its schema refuses, in place of the validator's own words. */
import type { z } from 'zod';

type Issue = z.core.$ZodRawIssue;

/**
 * Continues the name of the value: `must be a whole number`. Given to `safeParse` as `error`, it is used where the schema
 * has no message.
 */
export function describeIssue(issue: Issue): string {
  if (issue.input === undefined) return 'is missing';
  switch (issue.code) {
    case 'unrecognized_keys':
      return 'is no field here';
    case 'invalid_type':
      return `must be ${typeNames[issue.expected] ?? 'of another type'}`;
    case 'invalid_value':
      return `must be ${issue.values.map((one) => JSON.stringify(one)).join(' or ')}`;
    case 'invalid_format':
      return formatNames[issue.format] ?? (issue.pattern === undefined ? otherForm : `must match ${issue.pattern}`);
    case 'too_small':
      return bound(issue.origin, Number(issue.minimum), issue.inclusive === false ? 'more than' : 'at least');
    case 'too_big':
      return bound(issue.origin, Number(issue.maximum), issue.inclusive === false ? 'less than' : 'at most');
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`;
    default:
      return 'is not a value that is accepted here';
  }
}

const typeNames: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
  record: 'an object',
  null: 'null',
};

const otherForm = 'is not written as it must be';

const formatNames: Readonly<Record<string, string>> = {
  uuid: 'must be a UUID',
  email: 'must be an email address',
  url: 'must be a URL',
  date: 'must be a date such as 2031-05-12',
  datetime: 'must be a date and time such as 2031-05-12T10:00:00Z',
};

const units: Readonly<Record<string, string>> = { string: 'character', array: 'item', object: 'field', set: 'item' };

function bound(origin: string, limit: number, comparison: string): string {
  const unit = units[origin];
  if (unit === undefined) return `must be ${comparison} ${limit}`;
  if (limit === 1 && comparison === 'at least' && origin === 'string') return 'must not be empty';
  return `must have ${comparison} ${limit} ${unit}${limit === 1 ? '' : 's'}`;
}
