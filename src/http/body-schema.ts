/** A parsed body against its schema: every fault at once, each with the place where it is. */
import { z } from 'zod';
import { type Fault, problem } from './problem.ts';

/** A body with a thousand faults is told of so many. */
const faultsMax = 20;

/** Longer names are cut where they are said back. */
const nameLengthMax = 40;

/** Gives what the schema makes of a parsed body. Throws `bad-body`, whose `errors` have JSON pointers such as `/check_in`. */
export type BodySchema<Input> = (body: unknown) => Input;

/** Unknown fields are refused if the schema is strict (`z.strictObject`). */
export function createBodySchema<Input>(schema: z.ZodType<Input>): BodySchema<Input> {
  const known = schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
  return function checkBody(body) {
    const result = schema.safeParse(body);
    const issues = result.success ? [] : result.error.issues.slice(0, faultsMax);
    const faults = result.success ? unstorable(result.data) : issues.flatMap((issue) => faultsOf(issue, body, known));
    if (result.success && faults.length === 0) return result.data;
    throw problem('bad-body', { errors: faults.slice(0, faultsMax) });
  };
}

/** RFC 6901: `~` and `/` in a name are escaped; the whole body is `''`. */
export function jsonPointer(path: readonly PropertyKey[]): string {
  return path.map((step) => `/${shorten(String(step)).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

function faultsOf(issue: z.core.$ZodIssue, body: unknown, known: readonly string[]): Fault[] {
  const { path, message } = issue;
  if (issue.code === 'unrecognized_keys') {
    const others = path.length === 0 ? `; known: ${known.join(', ')}` : '';
    return issue.keys
      .slice(0, faultsMax)
      .map((key) => ({ pointer: jsonPointer([...path, key]), detail: `is no field here${others}` }));
  }
  const isMissing = issue.code === 'invalid_type' && valueAt(body, path) === undefined;
  return [{ pointer: jsonPointer(path), detail: isMissing ? 'is missing' : message }];
}

function valueAt(body: unknown, path: readonly PropertyKey[]): unknown {
  let value = body;
  for (const step of path) value = Object.hasOwn(Object(value), step) ? Object(value)[step] : undefined;
  return value;
}

/**
 * Text that no database of ours holds: PostgreSQL knows no NUL, and half a surrogate pair is no character. Walks with a
 * list of its own, since what a schema lets through may be nested deeper than the stack is.
 */
function unstorable(input: unknown): Fault[] {
  const faults: Fault[] = [];
  const rest: { readonly value: unknown; readonly path: readonly string[] }[] = [{ value: input, path: [] }];
  for (let next = rest.pop(); next !== undefined && faults.length < faultsMax; next = rest.pop()) {
    const { value, path } = next;
    if (typeof value === 'string' && /[\0\p{Surrogate}]/u.test(value)) {
      faults.push({ pointer: jsonPointer(path), detail: 'holds a NUL or half a surrogate pair' });
    }
    if (typeof value !== 'object' || value === null) continue;
    for (const [name, member] of Object.entries(value)) rest.push({ value: member, path: [...path, name] });
  }
  return faults;
}

function shorten(text: string): string {
  const characters = [...text.slice(0, 2 * nameLengthMax + 2)];
  return characters.length <= nameLengthMax ? text : `${characters.slice(0, nameLengthMax).join('')}…`;
}
