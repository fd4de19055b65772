/** Header hygiene: what belongs to one connection never crosses to the next (RFC 9110 section 7.6.1). */

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

/** `name` in lower case; `nominated` as `nominatedBy` gives it. */
export function crossesHops(name: string, nominated: ReadonlySet<string>): boolean {
  return !hopByHop.has(name) && !nominated.has(name);
}
