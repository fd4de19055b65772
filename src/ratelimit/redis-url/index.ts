/** Parses REDIS_URL: the address of a Redis, or those of the Sentinels that know which Redis is the primary. */

export interface RedisAddress {
  readonly host: string;
  readonly port: number;
}

export interface RedisCredentials {
  readonly username?: string;
  readonly password?: string;
}

export interface RedisUrl {
  readonly tls: boolean;
  /** The only Redis, or the Sentinels. */
  readonly addresses: readonly RedisAddress[];
  /** The name by which the Sentinels know the primary. Undefined without Sentinels. */
  readonly primaryName: string | undefined;
  /** Those of Redis. */
  readonly credentials: RedisCredentials;
  readonly sentinelCredentials: RedisCredentials;
  readonly database: number;
}

/** Completes the message "expected …". */
export const redisUrlForms =
  'redis://host:6379, rediss://user:password@host:6379/0 for TLS, or redis+sentinel://host:26379,host2:26379/NAME/0 for the Sentinels of the primary NAME (the password percent-encoded)';

/**
 * Returns undefined for another form: rejects a list of hosts without Sentinels, which would be looked up as one name,
 * and parameters, which would be ignored. `rediss+sentinel` uses TLS for the Sentinels as well.
 */
export function parseRedisUrl(text: string): RedisUrl | undefined {
  const [, secure, sentinel, user, hosts = '', path = '', query = ''] = urlPattern.exec(text) ?? [];
  const addresses = hosts.split(',').map((host) => parseAddress(host, sentinel === undefined ? 6379 : 26_379));
  const target = parseTarget(path, sentinel !== undefined);
  const credentials = parseUser(user);
  const sentinelCredentials = parseQuery(query, sentinel !== undefined);
  if (target === undefined || credentials === undefined || sentinelCredentials === undefined) return undefined;
  if (!addresses.every((address) => address !== undefined)) return undefined;
  if (sentinel === undefined && addresses.length > 1) return undefined;
  return { tls: secure !== undefined, addresses, credentials, sentinelCredentials, ...target };
}

const urlPattern = /^redis(s)?(\+sentinel)?:\/\/(?:([^/?#]*)@)?([^/?#]+)(\/[^?#]*)?(\?[^#]*)?$/i;

function parseAddress(text: string, defaultPort: number): RedisAddress | undefined {
  const url = `redis://${text}`;
  if (!URL.canParse(url)) return undefined;
  const { hostname, port } = new URL(url);
  if (hostname === '' || port === '0') return undefined;
  return { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? defaultPort : Number(port) };
}

function parseTarget(path: string, hasName: boolean): Pick<RedisUrl, 'primaryName' | 'database'> | undefined {
  const pattern = hasName ? /^\/(?<name>[^/]+)(?:\/(?<database>\d*))?$/ : /^(?:\/(?<database>\d*))?$/;
  const { groups } = pattern.exec(path) ?? {};
  const name = decode(groups?.['name'] ?? '');
  if (!pattern.test(path) || name === undefined) return undefined;
  return { primaryName: hasName ? name : undefined, database: Number(groups?.['database'] ?? 0) };
}

function parseUser(text = ''): RedisCredentials | undefined {
  const at = text.indexOf(':');
  const username = decode(at === -1 ? text : text.slice(0, at));
  const password = decode(at === -1 ? '' : text.slice(at + 1));
  if (username === undefined || password === undefined) return undefined;
  return credentialsOf(username, password);
}

function credentialsOf(username: string, password: string): RedisCredentials {
  return { ...(username !== '' && { username }), ...(password !== '' && { password }) };
}

function parseQuery(query: string, hasSentinels: boolean): RedisCredentials | undefined {
  const parameters = new URLSearchParams(query);
  const known = hasSentinels ? ['sentinel_username', 'sentinel_password'] : [];
  if ([...parameters.keys()].some((name) => !known.includes(name)) || badEscape.test(query)) return undefined;
  const [username = '', password = ''] = known.map((name) => parameters.get(name) ?? '');
  return credentialsOf(username, password);
}

const badEscape = /%(?![\da-f]{2})/i;

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** Names the servers for the log and for messages, without the password. */
export function hostsOfRedisUrl(text: string): string {
  const addresses = parseRedisUrl(text)?.addresses ?? [];
  return addresses.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`).join(', ');
}
