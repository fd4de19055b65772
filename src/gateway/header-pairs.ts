/** Headers as names and values in turn, as they go over the wire. */
import type { IncomingHttpHeaders } from 'node:http';

export function headerPairs(headers: IncomingHttpHeaders): string[] {
  return Object.entries(headers).flatMap(([name, value]) => [value ?? []].flat().flatMap((one) => [name, one]));
}
