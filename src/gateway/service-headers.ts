/** Headers that the rate-limit service wants its asker's client to have: those that the record allows, and no others. */
import type { ServerResponse } from 'node:http';
import type { ResponseHeader } from '#ratelimit';

/** Writes the allowed ones over what is there; a name that is given several times keeps all its values. */
export type WriteServiceHeaders = (res: ServerResponse, headers: readonly ResponseHeader[] | undefined) => void;

/** `allowed`: lower-case names. */
export function createWriteServiceHeaders(allowed: readonly string[]): WriteServiceHeaders {
  const names = new Set(allowed);
  return (res, headers) => {
    if (headers === undefined) return;
    const written = new Set<string>();
    for (const { name, value } of headers) {
      const lowerCase = name.toLowerCase();
      if (!names.has(lowerCase) || !isFieldValue(value)) continue;
      if (!written.has(lowerCase)) res.removeHeader(name);
      written.add(lowerCase);
      res.appendHeader(name, value);
    }
  };
}

/** RFC 9110 section 5.5; anything else would fail the response, not the header. */
function isFieldValue(value: string): boolean {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(value);
}
