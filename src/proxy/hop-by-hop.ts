/** Which headers belong to one connection and never cross to the next (RFC 9110 section 7.6.1), and how lists of raw headers are read. */

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

/** The names that a `Connection` header nominates, in lower case. */
export function nominatedBy(connection: string | readonly string[] | undefined): ReadonlySet<string> {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return none;
  const names = String(connection).toLowerCase().split(',');
  return new Set(names.map((name) => name.trim()));
}

const none: ReadonlySet<string> = new Set();

/** `name` in lower case; `nominated` as `nominatedBy` returns it. */
export function crossesHops(name: string, nominated: ReadonlySet<string> = none): boolean {
  return !hopByHop.has(name) && !nominated.has(name);
}

/** A list of names and values in turn, without those names. */
export function withoutNames(pairs: readonly string[], names: ReadonlySet<string>): string[] {
  return pairs.filter((_, index) => !names.has(pairs[index - (index % 2)] ?? ''));
}

/** The first value under a lower-case name; `rawHeaders` are names and values in turn. */
export function firstValue(rawHeaders: readonly Buffer[], name: string): string | undefined {
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const found = rawHeaders[index];
    if (found?.length === name.length && textOf(found).toLowerCase() === name) return textOf(rawHeaders[index + 1]);
  }
  return undefined;
}

/** Byte for byte, since header values have no defined encoding (RFC 9110 section 5.5). */
export function textOf(bytes: Buffer | undefined): string {
  return bytes === undefined ? '' : bytes.toString('latin1');
}
