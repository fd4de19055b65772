/** The header list of a request over HTTP/2: pseudo-headers first, names in lower case, nothing of the connection. */
import type { Dispatcher } from 'undici';
import { connectionHeaders } from '../server/received-headers.ts';
import { Http2Error } from './errors.ts';

/** What a request line and its headers are made of. */
export type RequestParts = Pick<Dispatcher.DispatchOptions, 'method' | 'path' | 'headers'>;

const invalidPath = /[^\x21-\x7e\x80-\xff]/;
const invalidValue = /[^\t\x20-\x7e\x80-\xff]/;

/**
 * Returns alternating names and values. Each character of a value is one byte. `host` becomes `:authority`, by default
 * `authority`. Throws `HTTP2_INVALID_REQUEST`.
 */
export function requestHead({ method, path, headers }: RequestParts, scheme: string, authority: string): string[] {
  if (invalidPath.test(path)) throw invalid('the path');
  const list = [':method', method, ':scheme', scheme, ':authority', authority, ':path', path];
  const pairs: readonly string[] = Array.isArray(headers) ? headers : pairsOf(headers ?? {});
  for (let index = 0; index + 1 < pairs.length; index += 2) add(list, pairs[index] ?? '', pairs[index + 1] ?? '');
  return list;
}

function pairsOf(headers: object): string[] {
  return Object.entries(headers).flatMap(([name, value]) => [value ?? []].flat().flatMap((one) => [name, String(one)]));
}

/** The place of the value of `:authority` in the list. */
const authorityIndex = 5;

function add(list: string[], name: string, value: string): void {
  const lowerName = name.toLowerCase();
  if (connectionHeaders.has(lowerName) && !(lowerName === 'te' && value === 'trailers')) return;
  if (lowerName.startsWith(':')) throw invalid('the name of a header');
  if (invalidValue.test(value)) throw invalid(`the header ${lowerName}`);
  if (lowerName === 'host') list[authorityIndex] = value;
  else list.push(lowerName, value);
}

/** Without the characters, because the message is logged and they may be a secret. */
function invalid(what: string): Http2Error {
  return new Http2Error('HTTP2_INVALID_REQUEST', `${what} has invalid characters`);
}
