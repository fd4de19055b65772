/** Generates prefixes, rewrites and path remainders for the tests of rewriting. */
import fc from 'fast-check';

const segment = fc.constantFrom('v1', 'hotels', 'bookings', '1', 'a', 'b', '%2F', 'x.y');
const prefix = fc.array(segment, { minLength: 1, maxLength: 3 }).map((parts) => `/${parts.join('/')}`);
export const anyPrefix = fc.oneof(fc.constant('/'), prefix);
export const rewrite = fc.oneof(fc.constant('/'), fc.constant(''), prefix);
export const rest = fc
  .tuple(fc.array(segment, { maxLength: 3 }), fc.constantFrom('', '/'))
  .map(([parts, end]) => (parts.length === 0 ? end : `/${parts.join('/')}${end}`));

export const joinPrefix = (before: string, after: string) => (before === '/' ? after || '/' : before + after);
