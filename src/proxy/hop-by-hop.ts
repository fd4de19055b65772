/** Hop-by-hop headers, which are never forwarded (RFC 9110 section 7.6.1), and helpers for lists of raw headers. */

const hopByHop = new Set([
  'connection',
  'expect',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Returns the header names that a `Connection` header lists, in lower case. */
export function nominatedBy(connection: string | readonly string[] | undefined): ReadonlySet<string> {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return none;
  const names = String(connection).toLowerCase().split(',');
  return new Set(names.map((name) => name.trim()));
}

const none: ReadonlySet<string> = new Set();

/** True for a header that may be forwarded. `name` is in lower case, `nominated` comes from `nominatedBy`. */
export function isEndToEnd(name: string, nominated: ReadonlySet<string> = none): boolean {
  return !hopByHop.has(name) && !nominated.has(name);
}

/** Removes the given names from a list of alternating names and values. */
export function withoutNames(pairs: readonly string[], names: ReadonlySet<string>): string[] {
  return pairs.filter((_, index) => !names.has(pairs[index - (index % 2)] ?? ''));
}

/** Returns the first value of a header. `name` is in lower case; `rawHeaders` are alternating names and values. */
export function firstValue(rawHeaders: readonly Buffer[], name: string): string | undefined {
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const found = rawHeaders[index];
    if (found?.length === name.length && textOf(found).toLowerCase() === name) return textOf(rawHeaders[index + 1]);
  }
  return undefined;
}

/** Decodes byte for byte, because header values have no defined encoding (RFC 9110 section 5.5). */
export function textOf(bytes: Buffer | undefined): string {
  return bytes === undefined ? '' : bytes.toString('latin1');
}
