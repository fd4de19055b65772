/** Says in plain English what zod found wrong with a value. */
import type * as z from 'zod';

/**
 * Returns a phrase that follows the name of a value in JSON: `must be a whole number`. Pass it to `safeParse` as
 * `error`: zod uses it wherever the schema has no message.
 */
export function describeIssue(issue: z.core.$ZodRawIssue): string {
  return issue.input === undefined ? 'is missing' : statementOf(issue, jsonTypes);
}

const jsonTypes: TypeNames = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
  record: 'an object',
  null: 'null',
};

/** Names the types of zod, some of which have other names in YAML than in JSON. */
export type TypeNames = Readonly<Record<string, string>>;

/** Returns a phrase that follows the name of a value that is not missing. */
export function statementOf(issue: z.core.$ZodIssue | z.core.$ZodRawIssue, types: TypeNames): string {
  switch (issue.code) {
    case 'unrecognized_keys':
      return 'is not a known field';
    case 'invalid_type':
      return `must be ${types[issue.expected] ?? 'of another type'}`;
    case 'invalid_value':
      return `must be ${issue.values.map((one) => JSON.stringify(one)).join(' or ')}`;
    case 'invalid_format':
      return formatNames[issue.format] ?? (issue.pattern === undefined ? otherFormat : `must match ${issue.pattern}`);
    case 'too_small':
      return bound(issue.origin, Number(issue.minimum), issue.inclusive === false ? 'more than' : 'at least');
    case 'too_big':
      return bound(issue.origin, Number(issue.maximum), issue.inclusive === false ? 'less than' : 'at most');
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`;
    default:
      return 'is not an accepted value';
  }
}

const otherFormat = 'does not have the required format';

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
