/** Readers for Ambassador's fields that mean nearly the same as ours, each with a notice of what it drops. */
import type { Fault } from '../errors.ts';
import type { AmbassadorReader, Fields } from '../fields/field.ts';
import { credentialHeaders, unknownCommand } from '../fields/headers.ts';

/** A field that is not supported. No notice while its value turns it off. */
export function ignored(why: string, remedy = 'Remove it, if it is no longer needed.'): AmbassadorReader {
  return (value) => ({
    fields: {},
    notice: [false, '', 'default'].some((off) => value === off)
      ? undefined
      : { message: `is not supported: ${why}`, remedy },
  });
}

/** A field that is not needed here. */
export const silent: AmbassadorReader = () => ({ fields: {} });

/** With `tls` the service is called over TLS, which an address with https says here. */
export function secured(name: string): AmbassadorReader {
  return (value, { tls: context }) => {
    const isSecure = context === true || (typeof context === 'string' && context !== '');
    const isBare = typeof value === 'string' && !value.includes('://');
    return { fields: { [name]: isSecure && isBare ? `https://${value}` : value } };
  };
}

/** `true` is short for `meaning` in a longer field, which wins where both are written. */
export function shorthand(name: string, meaning: unknown): AmbassadorReader {
  return (value, all) => ({ fields: value === true && all[name] === undefined ? { [name]: meaning } : {} });
}

/** A field that has no meaning beside `host_redirect`. */
export function withoutRedirect(read: AmbassadorReader): AmbassadorReader {
  return (value, all) => (all['host_redirect'] === true ? { fields: {} } : read(value, all));
}

/** A `host` with a `*` is our `hostname`, unless it is a regular expression. */
export const hostOrHostname: AmbassadorReader = (value, { hostname, host_regex: isRegex }) => {
  if (hostname !== undefined) return dropped('has no effect beside hostname', 'Remove it.');
  const isGlob = isRegex !== true && typeof value === 'string' && value.includes('*');
  return { fields: isGlob ? { hostname: value } : { host: value } };
};

export const tls: AmbassadorReader = (value) =>
  value === false || value === ''
    ? { fields: {} }
    : dropped(
        'is read as https: certificates are checked, and none is shown',
        'Set NODE_EXTRA_CA_CERTS for a private certificate authority.',
      );

/** Ambassador reads these fields only where `host_redirect` is true. */
export function onlyWithHostRedirect(name: string): AmbassadorReader {
  return (value, { host_redirect: redirects }) =>
    redirects === true
      ? { fields: { [name]: value } }
      : dropped('has no effect without host_redirect: true', 'Set it, or remove this.');
}

export const exactPrefix: AmbassadorReader = (value, { prefix_exact: isExact }) => {
  if (isExact !== true || typeof value !== 'string' || value.length < 2 || !value.endsWith('/')) {
    return { fields: { prefix: value } };
  }
  const remedy = 'Use prefix_regex where the slash makes a difference.';
  return {
    fields: { prefix: value.slice(0, -1) },
    notice: { message: 'is matched without the slash at its end', remedy },
  };
};

export const rewrite: AmbassadorReader = (value, { regex_rewrite: regex, prefix_regex: isRegex }) => {
  const winner = regex === undefined ? isRegex === true && value !== '' && 'prefix_regex' : 'regex_rewrite';
  return winner === false ? { fields: { rewrite: value } } : dropped(`has no effect beside ${winner}`, 'Remove it.');
};

/** In Ambassador a missing header never gives an entry, whatever `omit_if_not_present` says. */
export const labels: AmbassadorReader = (value) => ({
  fields: { labels: isMap(value) ? mapValues(value, withOmission) : value },
});

function withOmission(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withOmission);
  if (!isMap(value)) return value;
  if ('header' in value || 'header_name' in value) return { ...value, omit_if_not_present: true };
  return mapValues(value, withOmission);
}

export const circuitBreakers: AmbassadorReader = (value) => {
  const list = Array.isArray(value) ? value : [value];
  const kept = list.filter((one) => !isMap(one) || one['priority'] !== 'high');
  const fields = kept.length === 0 ? {} : { circuit_breakers: kept };
  if (kept.length === list.length) return { fields };
  const message = 'of priority high are not supported: the requests of all mappings have one priority';
  return { fields, notice: { message, remedy: 'Remove the entry of priority high.' } };
};

/** Ambassador 0.x named a record here. */
export const outlierDetection: AmbassadorReader = (value, all) =>
  typeof value === 'string'
    ? ignored('it names a record of Ambassador 0.x')(value, all)
    : { fields: { outlier_detection: value } };

export const loadBalancer: AmbassadorReader = (value) => {
  const policy = isMap(value) ? value['policy'] : undefined;
  if (typeof policy !== 'string' || ['round_robin', 'least_request'].includes(policy)) {
    return { fields: { load_balancer: isMap(value) ? { policy } : value } };
  }
  return dropped(
    `of policy ${policy} is not supported, so it is round_robin`,
    'Keep sessions where every address of the service finds them.',
  );
};

export const healthChecks: AmbassadorReader = (value) => {
  const list: readonly unknown[] = Array.isArray(value) ? value : [value];
  const kept = list.find((one) => isMap(one) && isMap(one['health_check']) && !('grpc' in one['health_check']));
  const fields = kept === undefined ? {} : { health_checks: withoutHeaders(kept) };
  const isWhole =
    list.length === 1 && kept !== undefined && JSON.stringify(fields.health_checks) === JSON.stringify(kept);
  const message = 'are read as one check over HTTP, without added or removed headers';
  return { fields, notice: isWhole ? undefined : { message, remedy: 'Give the service a path for its health check.' } };
};

function withoutHeaders(check: unknown): unknown {
  if (!isMap(check)) return check;
  const kept = Object.entries(check).filter(([name]) => !/^(?:add|remove)_request_headers$/.test(name));
  return Object.fromEntries(kept.map(([name, value]) => [name, withoutHeaders(value)]));
}

/** Added headers without those that hold a command of Envoy's which is not filled in. */
export function knownCommands(name: string): AmbassadorReader {
  return (value) => {
    if (!isMap(value)) return { fields: { [name]: value } };
    const isKnown = (given: unknown) => unknownCommand(String(isMap(given) ? given['value'] : given)) === undefined;
    const [known, unknown] = partition(Object.entries(value), ([, given]) => isKnown(given));
    const message = `leave out ${unknown.map(([header]) => header).join(', ')}: Envoy's %…% are not filled in`;
    const notice = { message, remedy: 'Read X-Forwarded-For, X-Forwarded-Proto or X-Request-Id in the service.' };
    return { fields: { [name]: Object.fromEntries(known) }, notice: unknown.length === 0 ? undefined : notice };
  };
}

/** In Ambassador the service gets what the auth service answers under these names; here it gets what the client sent. */
export const identityHeaders: AmbassadorReader = (value) => {
  const isKept = (name: unknown) => !credentialHeaders.includes(String(name).toLowerCase());
  if (!Array.isArray(value) || value.every(isKept)) return { fields: { allowed_authorization_headers: value } };
  const message = `leave out ${credentialHeaders.join(', ')}: a service gets what the client sent`;
  return {
    fields: { allowed_authorization_headers: value.filter(isKept) },
    notice: { message, remedy: 'Have the auth service answer under another name.' },
  };
};

/** What `allowed_authorization_headers` was before 0.50. */
export const allowedHeaders: AmbassadorReader = (value, all) =>
  all['allowed_authorization_headers'] === undefined
    ? identityHeaders(value, all)
    : dropped('has no effect beside allowed_authorization_headers', 'Remove it.');

function dropped(message: string, remedy: string): { readonly fields: Fields; readonly notice: Fault } {
  return { fields: {}, notice: { message, remedy } };
}

function partition<T>(items: readonly T[], accepts: (item: T) => boolean): readonly [readonly T[], readonly T[]] {
  return [items.filter(accepts), items.filter((item) => !accepts(item))];
}

export function isMap(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function mapValues(map: Fields, become: (value: unknown) => unknown): Fields {
  return Object.fromEntries(Object.entries(map).map(([name, value]) => [name, become(value)]));
}
