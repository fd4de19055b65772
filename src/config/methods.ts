/** Names of request methods. */
import { METHODS } from 'node:http';
import type { Fault } from './fields.ts';

/** Methods are case-sensitive (RFC 9110 section 9.1): one in lower case would match nothing. `*` is left to who allows it. */
export function methodFault(method: string): Fault | undefined {
  const upper = method.toUpperCase();
  if (upper !== method && METHODS.includes(upper)) {
    return { message: `${JSON.stringify(method)} is in lower case, did you mean ${upper}?`, remedy: `Write ${upper}.` };
  }
  if (/^[\w!#$%&'*+.^`|~-]+$/.test(method)) return undefined;
  return {
    message: `${JSON.stringify(method)} is not a method`,
    remedy: 'Write one, such as GET; for several set method_regex: true and write "GET|HEAD".',
  };
}
