/** Translates Ambassador's fields whose meaning differs from ours, with a notice or an error for what is lost. */

import { type Fields, isMap } from '#foundation';
import type { Fault } from '../errors.ts';
import type { AmbassadorReader, Translation } from '../fields/field.ts';
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

/** Rejects a field that may protect requests, unless its value turns it off. `instead` is our field that does the same. */
export function refused(instead: string | undefined, why: string): AmbassadorReader {
  const fields = instead ?? 'what it does as fields of this Mapping or of an AuthService';
  const remedy = `Write ${fields}, then remove it.`;
  return (value) => ({
    fields: {},
    fault: isEmpty(value) ? undefined : { message: `is not supported: ${why}`, remedy, instead },
  });
}

export function isEmpty(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length === 0;
  return [undefined, null, false, ''].some((off) => off === value);
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
export const hostOrHostname: AmbassadorReader = (value, all) => {
  if (all['hostname'] !== undefined) return dropped('has no effect with hostname', 'Remove it.');
  // The Kubernetes API writes this text for a Mapping without a host when it converts it from v3alpha1.
  if (value === '_skip_mapping_with_empty_host_') return { fields: {} };
  if (all['host_regex'] === true || typeof value !== 'string') return { fields: { host: value } };
  return withoutPort(value, value.includes('*') ? 'hostname' : 'host');
};

export const hostname: AmbassadorReader = (value) =>
  typeof value === 'string' ? withoutPort(value, 'hostname') : { fields: { hostname: value } };

/** Removes the port of a host, because hosts are compared without it. */
function withoutPort(host: string, field: string): Translation {
  const [, name, port] = /^([^:]+|\[[^\]]*\]):(\d+|\*)$/.exec(host) ?? [];
  if (port === undefined) return { fields: { [field]: host } };
  const remedy = 'Write it without the port: hosts are compared without it.';
  return { fields: { [field]: name }, notice: { message: 'is matched without its port', remedy } };
}

export const tls: AmbassadorReader = (value) =>
  value === false || value === ''
    ? { fields: {} }
    : dropped(
        'is read as https: the certificate of the service is verified, and no client certificate is sent',
        'Write apiVersion: gateway/v1 and tls: { ca, client_cert, client_key } if the service needs them.',
      );

/** Drops a field unless `host_redirect` is true, like Ambassador. */
export function onlyWithHostRedirect(name: string): AmbassadorReader {
  return (value, { host_redirect: redirects }) =>
    redirects === true
      ? { fields: { [name]: value } }
      : dropped('has no effect without host_redirect: true', 'Set host_redirect, or remove this field.');
}

export const prefix: AmbassadorReader = (value, all) => {
  if (typeof value === 'string' && addsSlash(value, all)) return { fields: { prefix: value, prefix_exact: true } };
  if (all['prefix_exact'] !== true || typeof value !== 'string' || value.length < 2 || !value.endsWith('/')) {
    return { fields: { prefix: value } };
  }
  const remedy = 'Use prefix_regex if the slash matters.';
  return {
    fields: { prefix: value.slice(0, -1) },
    notice: { message: 'is matched without its trailing slash', remedy },
  };
};

/**
 * Whether a Mapping redirects `/a` to `/a/`, usually beside a Mapping for `/a/`. In Ambassador the two prefixes differ.
 * Here the redirect matches only `/a`, and the other Mapping what is below it.
 */
function addsSlash(given: string, all: Fields): boolean {
  const target = all['path_redirect'] ?? all['prefix_redirect'];
  return all['host_redirect'] === true && all['prefix_regex'] !== true && given !== '/' && target === `${given}/`;
}

/** Keeps the slash that the redirect adds. */
export const prefixRedirect: AmbassadorReader = (value, all) =>
  addsSlash(String(all['prefix']), all) && all['path_redirect'] === undefined
    ? { fields: { path_redirect: value } }
    : onlyWithHostRedirect('prefix_redirect')(value, all);

/** With `prefix_regex`, Ambassador replaces the whole path, because that is what the expression matches. */
export const rewrite: AmbassadorReader = (value, { regex_rewrite: regex, prefix_regex: isRegex }) => {
  if (regex !== undefined) return dropped('has no effect with regex_rewrite', 'Remove it.');
  const isWhole = isRegex === true && value !== '';
  return { fields: isWhole ? { regex_rewrite: { pattern: '^.*$', substitution: value } } : { rewrite: value } };
};

/** Translates the labels of each group, by domain: `{ domain: [{ group: [label] }] }`. */
export const labels: AmbassadorReader = (value) => ({
  fields: {
    labels: inMap(value, (groups) => inList(groups, (group) => inMap(group, (list) => inList(list, label)))),
  },
});

/**
 * Sets `omit_if_not_present`, because Ambassador always omits the entry of a missing header. `v2Shorthand` and `v3Key` are
 * what the Kubernetes API writes when it converts a label between v2 and v3alpha1.
 */
function label(value: unknown): unknown {
  if (!isMap(value)) return value;
  const { generic_key: fixed, v3Key: key, ...rest } = value;
  if (key !== undefined && Object.keys(rest).length === 0) return { generic_key: { key, value: fixed } };
  return inMap(value, (fields) => {
    if (!isMap(fields)) return fields;
    const { v2Shorthand: _v2Shorthand, ...kept } = fields;
    return 'header' in kept || 'header_name' in kept ? { ...kept, omit_if_not_present: true } : kept;
  });
}

/** Drops the mark that the Kubernetes API writes for origins that were a text with commas in v2. */
export const cors: AmbassadorReader = (value) => {
  if (!isMap(value)) return { fields: { cors: value } };
  const { v2CommaSeparatedOrigins: _v2CommaSeparatedOrigins, ...rule } = value;
  return { fields: { cors: rule } };
};

/** Keeps the limits for the priority of the Mapping. Other limits have no effect. */
export const circuitBreakers: AmbassadorReader = (value, { priority = 'default' }) => {
  const list: readonly unknown[] = Array.isArray(value) ? value : [value];
  const isKept = (one: unknown) => !isMap(one) || (one['priority'] ?? 'default') === (priority || 'default');
  const [kept, others] = partition(list, isKept);
  const limits = kept.map((one) => {
    const { priority: _priority, ...rest } = isMap(one) ? one : {};
    return isMap(one) ? rest : one;
  });
  const fields = limits.length === 0 ? {} : { circuit_breakers: limits };
  if (others.length === 0) return { fields };
  const message = `have no effect for another priority than ${String(priority || 'default')}`;
  return { fields, notice: { message, remedy: 'Remove the entries with another priority.' } };
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

/** A check over gRPC needs a service that speaks it. */
export const healthChecks: AmbassadorReader = (value, { grpc }) => {
  const list: readonly unknown[] = Array.isArray(value) ? value : [value];
  const isKept = (check: unknown) => isMap(check) && (grpc === true || !('grpc' in check));
  const kept = list.find((one) => isMap(one) && isKept(one['health_check']));
  const fields = kept === undefined ? {} : { health_checks: withoutHeaders(kept) };
  const isUnchanged =
    list.length === 1 && kept !== undefined && JSON.stringify(fields.health_checks) === JSON.stringify(kept);
  const message = 'are read as a single check, without added or removed headers';
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

/**
 * Drops added headers that contain unsupported Envoy variables. One that replaces what the client sent protects the
 * service, so it stays and is then rejected. `v2Representation` is what the Kubernetes API writes when it converts the
 * value from v2, where it may be null.
 */
export function addedHeaders(name: string): AmbassadorReader {
  return (value) => {
    if (!isMap(value)) return { fields: { [name]: value } };
    const given = Object.entries(mapValues(value, addedHeader)).filter(([, one]) => one !== null);
    const isKnown = (one: unknown) =>
      unsupportedVariable(String(isMap(one) ? one['value'] : one)) === undefined ||
      (isMap(one) && one['append'] === false);
    const [known, unknown] = partition(given, ([, one]) => isKnown(one));
    const message = `are read without ${unknown.map(([header]) => header).join(', ')}, because these %…% variables of Envoy are not supported`;
    const notice = { message, remedy: 'Read X-Forwarded-For, X-Forwarded-Proto or X-Request-Id in the service.' };
    return { fields: { [name]: Object.fromEntries(known) }, notice: unknown.length === 0 ? undefined : notice };
  };
}

function addedHeader(given: unknown): unknown {
  if (!isMap(given)) return given;
  const { v2Representation: written, ...header } = given;
  return written === 'null' && Object.keys(header).length === 0 ? null : header;
}

/**
 * Drops credential headers. Ambassador replaces them with those of the auth service; here services get the client's.
 */
export const identityHeaders: AmbassadorReader = (value) => {
  const isSetCookie = (name: unknown) => String(name).toLowerCase() === 'set-cookie';
  const isKept = (name: unknown) => !credentialHeaders.includes(String(name).toLowerCase()) && !isSetCookie(name);
  if (!Array.isArray(value) || value.every(isKept)) return { fields: { allowed_authorization_headers: value } };
  const notice = value.some(isSetCookie)
    ? {
        message: 'are read without set-cookie: services do not read it',
        remedy: 'List it in allowed_client_headers_on_success to send it to the client.',
      }
    : {
        message: `are read without ${credentialHeaders.join(', ')}: services get the client's values`,
        remedy: 'Let the auth service respond with a header of another name.',
      };
  return { fields: { allowed_authorization_headers: value.filter(isKept) }, notice };
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

function mapValues(map: Fields, convert: (value: unknown) => unknown): Fields {
  return Object.fromEntries(Object.entries(map).map(([name, value]) => [name, convert(value)]));
}

/** Converts the values of a map, and returns anything else unchanged. */
function inMap(given: unknown, convert: (value: unknown) => unknown): unknown {
  return isMap(given) ? mapValues(given, convert) : given;
}

/** Converts the items of a list, and returns anything else unchanged. */
function inList(given: unknown, convert: (value: unknown) => unknown): unknown {
  return Array.isArray(given) ? given.map(convert) : given;
}

/** Ambassador's default is the opposite. Without the field, a record gets no notice. */
export const limitedStatus: AmbassadorReader = (value) => {
  const isExhausted = isEmpty(value) || (isMap(value) && value['use_resource_exhausted_code'] === true);
  return {
    fields: {},
    notice: isExhausted
      ? undefined
      : {
          message:
            'is not supported: calls beyond a limit get RESOURCE_EXHAUSTED, because clients repeat UNAVAILABLE at once',
          remedy: 'Set use_resource_exhausted_code: true.',
        },
  };
};

/** Drops a field of an AuthService that Ambassador ignores for services over gRPC. */
export function onlyOverHttp(name: string): AmbassadorReader {
  return (value, { proto }) => {
    if (proto !== 'grpc') return { fields: { [name]: value } };
    const notice = { message: 'has no effect with proto: grpc', remedy: 'Remove it.' };
    return { fields: {}, notice: isEmpty(value) ? undefined : notice };
  };
}

/** Ambassador reads it only for services over gRPC. */
export const protocolVersion: AmbassadorReader = (value, { proto }) => ({
  fields: proto === 'grpc' ? { protocol_version: value } : {},
});
