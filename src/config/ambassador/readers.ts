/** Translates Ambassador's fields whose meaning differs from ours, with a notice of what is lost. */
import type { Fault } from '../errors.ts';
import type { AmbassadorReader, Fields } from '../fields/field.ts';
import { credentialHeaders, unsupportedVariable } from '../fields/headers.ts';

/** Drops a field that is not supported, with a notice unless its value turns it off anyway. */
export function ignored(why: string, remedy = 'Remove it if you do not need it.'): AmbassadorReader {
  return (value) => ({
    fields: {},
    notice: [false, '', 'default'].some((off) => value === off)
      ? undefined
      : { message: `is not supported: ${why}`, remedy },
  });
}

/** Drops a field without a notice, because frontdesk does not need it. */
export const ignoredSilently: AmbassadorReader = () => ({ fields: {} });

/** Writes the service's address with `https://` if the record sets `tls`. */
export function httpsIfTls(name: string): AmbassadorReader {
  return (value, { tls: context }) => {
    const isSecure = context === true || (typeof context === 'string' && context !== '');
    const isBare = typeof value === 'string' && !value.includes('://');
    return { fields: { [name]: isSecure && isBare ? `https://${value}` : value } };
  };
}

/** Adds the namespace of the record to the name of a service that has none, which is where Ambassador looks for it. */
export const service: AmbassadorReader = (value, all) => {
  const { namespace } = all;
  const isLocal = typeof value === 'string' && typeof namespace === 'string';
  const bare = /^((?:\w+:\/\/)?)(?!localhost\b)([^.:/]+)(?=$|:\d)/;
  return httpsIfTls('service')(isLocal ? value.replace(bare, `$1$2.${namespace}`) : value, all);
};

/**
 * Translates a map of conditions, and the field `present`, which lists names that only have to be present. The
 * Kubernetes API writes it for each `true` when it converts a record of v2.
 */
export function conditions(name: string, present: string): AmbassadorReader {
  return (_, { [name]: given = {}, [present]: names }) => {
    const isBoth = isMap(given) && Array.isArray(names);
    return {
      fields: { [name]: isBoth ? { ...given, ...Object.fromEntries(names.map((one) => [one, true])) } : given },
    };
  };
}

/** Translates `true` to `meaning` in the field `name`, unless the record also sets that field. */
export function shorthand(name: string, meaning: unknown): AmbassadorReader {
  return (value, all) => ({ fields: value === true && all[name] === undefined ? { [name]: meaning } : {} });
}

/** Drops a field that has no meaning with `host_redirect`. */
export function withoutRedirect(read: AmbassadorReader): AmbassadorReader {
  return (value, all) => (all['host_redirect'] === true ? { fields: {} } : read(value, all));
}

/** Translates a `host` that contains a `*` to our `hostname`, unless it is a regular expression. */
export const hostOrHostname: AmbassadorReader = (value, { hostname, host_regex: isRegex }) => {
  if (hostname !== undefined) return dropped('has no effect with hostname', 'Remove it.');
  const isGlob = isRegex !== true && typeof value === 'string' && value.includes('*');
  return { fields: isGlob ? { hostname: value } : { host: value } };
};

export const tls: AmbassadorReader = (value) =>
  value === false || value === ''
    ? { fields: {} }
    : dropped(
        'is read as https: the certificate of the service is verified, and no client certificate is sent',
        'Set NODE_EXTRA_CA_CERTS for a private certificate authority.',
      );

/** Drops a field unless `host_redirect` is true, like Ambassador. */
export function onlyWithHostRedirect(name: string): AmbassadorReader {
  return (value, { host_redirect: redirects }) =>
    redirects === true
      ? { fields: { [name]: value } }
      : dropped('has no effect without host_redirect: true', 'Set host_redirect, or remove this field.');
}

export const exactPrefix: AmbassadorReader = (value, { prefix_exact: isExact }) => {
  if (isExact !== true || typeof value !== 'string' || value.length < 2 || !value.endsWith('/')) {
    return { fields: { prefix: value } };
  }
  const remedy = 'Use prefix_regex if the slash matters.';
  return {
    fields: { prefix: value.slice(0, -1) },
    notice: { message: 'is matched without its trailing slash', remedy },
  };
};

/** With `prefix_regex`, Ambassador replaces the whole path, because that is what the expression matches. */
export const rewrite: AmbassadorReader = (value, { regex_rewrite: regex, prefix_regex: isRegex }) => {
  if (regex !== undefined) return dropped('has no effect with regex_rewrite', 'Remove it.');
  const isWhole = isRegex === true && value !== '';
  return { fields: isWhole ? { regex_rewrite: { pattern: '^.*$', substitution: value } } : { rewrite: value } };
};

/** Sets `omit_if_not_present`, because Ambassador always omits the entry of a missing header. */
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
  const message = 'with priority high are not supported: all requests have the same priority';
  return { fields, notice: { message, remedy: 'Remove the entry with priority high.' } };
};

/** Drops the text that Ambassador 0.x has in this field: the name of another record. */
export const outlierDetection: AmbassadorReader = (value, all) =>
  typeof value === 'string'
    ? ignored('it refers to a record of Ambassador 0.x')(value, all)
    : { fields: { outlier_detection: value } };

export const loadBalancer: AmbassadorReader = (value) => {
  const policy = isMap(value) ? value['policy'] : undefined;
  if (typeof policy !== 'string' || ['round_robin', 'least_request'].includes(policy)) {
    return { fields: { load_balancer: isMap(value) ? { policy } : value } };
  }
  return dropped(
    `with policy ${policy} is not supported, so round_robin is used`,
    'Store sessions where all instances of the service can read them.',
  );
};

export const healthChecks: AmbassadorReader = (value) => {
  const list: readonly unknown[] = Array.isArray(value) ? value : [value];
  const kept = list.find((one) => isMap(one) && isMap(one['health_check']) && !('grpc' in one['health_check']));
  const fields = kept === undefined ? {} : { health_checks: withoutHeaders(kept) };
  const isUnchanged =
    list.length === 1 && kept !== undefined && JSON.stringify(fields.health_checks) === JSON.stringify(kept);
  const message = 'are read as a single HTTP check, without added or removed headers';
  return {
    fields,
    notice: isUnchanged ? undefined : { message, remedy: 'Provide a path for health checks in the service.' },
  };
};

function withoutHeaders(check: unknown): unknown {
  if (!isMap(check)) return check;
  const kept = Object.entries(check).filter(([name]) => !/^(?:add|remove)_request_headers$/.test(name));
  return Object.fromEntries(kept.map(([name, value]) => [name, withoutHeaders(value)]));
}

/** Drops added headers that contain unsupported Envoy variables. */
export function withoutUnsupportedVariables(name: string): AmbassadorReader {
  return (value) => {
    if (!isMap(value)) return { fields: { [name]: value } };
    const isKnown = (given: unknown) =>
      unsupportedVariable(String(isMap(given) ? given['value'] : given)) === undefined;
    const [known, unknown] = partition(Object.entries(value), ([, given]) => isKnown(given));
    const message = `are read without ${unknown.map(([header]) => header).join(', ')}, because these %…% variables of Envoy are not supported`;
    const notice = { message, remedy: 'Read X-Forwarded-For, X-Forwarded-Proto or X-Request-Id in the service.' };
    return { fields: { [name]: Object.fromEntries(known) }, notice: unknown.length === 0 ? undefined : notice };
  };
}

/**
 * Drops credential headers. Ambassador replaces them with those of the auth service; here services get the client's.
 */
export const identityHeaders: AmbassadorReader = (value) => {
  const isKept = (name: unknown) => !credentialHeaders.includes(String(name).toLowerCase());
  if (!Array.isArray(value) || value.every(isKept)) return { fields: { allowed_authorization_headers: value } };
  const message = `are read without ${credentialHeaders.join(', ')}: services get the client's values`;
  return {
    fields: { allowed_authorization_headers: value.filter(isKept) },
    notice: { message, remedy: 'Let the auth service respond with a header of another name.' },
  };
};

/** Translates the name of `allowed_authorization_headers` before Ambassador 0.50. */
export const allowedHeaders: AmbassadorReader = (value, all) =>
  all['allowed_authorization_headers'] === undefined
    ? identityHeaders(value, all)
    : dropped('has no effect with allowed_authorization_headers', 'Remove it.');

function dropped(message: string, remedy: string): { readonly fields: Fields; readonly notice: Fault } {
  return { fields: {}, notice: { message, remedy } };
}

function partition<T>(items: readonly T[], accepts: (item: T) => boolean): readonly [readonly T[], readonly T[]] {
  return [items.filter(accepts), items.filter((item) => !accepts(item))];
}

export function isMap(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function mapValues(map: Fields, convert: (value: unknown) => unknown): Fields {
  return Object.fromEntries(Object.entries(map).map(([name, value]) => [name, convert(value)]));
}
