/** Parses the URL of a PostgreSQL server, or of several of which one is the primary. */

export interface PostgresUrl {
  /** The URL of each server, in the order in which they are tried. */
  readonly servers: readonly string[];
  /** The hosts and the database, without the password. */
  readonly name: string;
  readonly parameters: URLSearchParams;
}

/**
 * Accepts `postgres://user:password@a:5432,b:5432/name`, as libpq does. Returns undefined for a list of hosts in the
 * parameters, and for a path that is not the name of a database: it is usually the rest of a password with an unencoded
 * slash.
 */
export function parsePostgresUrl(text: string): PostgresUrl | undefined {
  const { scheme = '', user = '', hosts = '', rest = '' } = urlPattern.exec(text)?.groups ?? {};
  if (scheme === '' || (hosts === '' && rest === '')) return undefined;
  const servers = hosts.split(',').map((host) => `${scheme}${user}${host}${rest}`);
  const isList = servers.length > 1;
  if (!servers.every((server) => URL.canParse(server))) return undefined;
  if (isList && !hosts.split(',').every((host) => hostPattern.test(host))) return undefined;
  const { pathname, searchParams: parameters } = new URL(servers[0] ?? '');
  if (/[/@]/.test(pathname.slice(1))) return undefined;
  const places = [...parameters.getAll('host'), ...parameters.getAll('port')];
  // The driver lets a host in the parameters take precedence over that of each server.
  if (isList ? places.length > 0 : places.some((place) => place.includes(','))) return undefined;
  return { servers, name: `${hosts}${pathname}`, parameters };
}

const urlPattern = /^(?<scheme>postgres(?:ql)?:\/\/)(?<user>[^/?#]*@)?(?<hosts>[^/?#]*)(?<rest>.*)$/s;

/** In a list, so that a part of a password is never taken for a host. */
const hostPattern = /^(?:\[[\da-f:.]+\]|[\w.-]+)(?::\d+)?$/i;
