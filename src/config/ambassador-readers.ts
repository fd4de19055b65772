/** Fields of Ambassador's records that mean nearly the same in ours: what of them is kept, and what is told. */
import type { FieldReader, Fields } from './ambassador-fields.ts';
import { credentialHeaders } from './auth-service.ts';
import { unknownCommand } from './header-rules.ts';

/** With `tls` the service is called over TLS, as an address with https says it here. */
export function secured(name: string): FieldReader {
  return (value, { tls: context }) => {
    const isSecure = context === true || (typeof context === 'string' && context !== '');
    const isBare = typeof value === 'string' && !value.includes('://');
    return { fields: { [name]: isSecure && isBare ? `https://${value}` : value } };
  };
}

/** `true` stands for a longer field, which wins where both are written. */
export function shorthand(name: string, meaning: unknown): FieldReader {
  return (value, all) => ({ fields: value === true && all[name] === undefined ? { [name]: meaning } : {} });
}

export const host: FieldReader = (value, { hostname }) => {
  if (hostname !== undefined) {
    return { fields: {}, notice: { message: 'says nothing beside hostname', remedy: 'Remove it.' } };
  }
  return { fields: typeof value === 'string' && value.includes('*') ? { hostname: value } : { host: value } };
};

export const tls: FieldReader = (value) => {
  if (value === false || value === '') return { fields: {} };
  const message = 'is read as https: certificates are checked, and none is shown';
  return {
    fields: {},
    notice: { message, remedy: 'Set NODE_EXTRA_CA_CERTS for a certificate authority of your own.' },
  };
};

/** They are read there only where host_redirect is true. */
export function redirectOnly(name: string): FieldReader {
  return (value, { host_redirect: redirects }) =>
    redirects === true
      ? { fields: { [name]: value } }
      : {
          fields: {},
          notice: { message: 'says nothing without host_redirect: true', remedy: 'Set it, or remove this.' },
        };
}

export const exactPrefix: FieldReader = (value, { prefix_exact: isExact }) => {
  if (isExact !== true || typeof value !== 'string' || value.length < 2 || !value.endsWith('/')) {
    return { fields: { prefix: value } };
  }
  const remedy = 'Use prefix_regex where the slash makes a difference.';
  return {
    fields: { prefix: value.slice(0, -1) },
    notice: { message: 'is matched without the slash at its end', remedy },
  };
};

export const rewrite: FieldReader = (value, { regex_rewrite: regex, prefix_regex: isRegex }) => {
  const winner = regex === undefined ? isRegex === true && value !== '' && 'prefix_regex' : 'regex_rewrite';
  if (winner === false) return { fields: { rewrite: value } };
  return { fields: {}, notice: { message: `says nothing beside ${winner}`, remedy: 'Remove it.' } };
};

/** A missing header never gives an entry there, whatever `omit_if_not_present` says. */
export const labels: FieldReader = (value) => ({
  fields: { labels: isMap(value) ? mapValues(value, withOmission) : value },
});

function withOmission(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withOmission);
  if (!isMap(value)) return value;
  if ('header' in value || 'header_name' in value) return { ...value, omit_if_not_present: true };
  return mapValues(value, withOmission);
}

export const circuitBreakers: FieldReader = (value) => {
  const list = Array.isArray(value) ? value : [value];
  const kept = list.filter((one) => !isMap(one) || one['priority'] !== 'high');
  const fields = kept.length === 0 ? {} : { circuit_breakers: kept };
  if (kept.length === list.length) return { fields };
  const message = 'of priority high are not supported: the requests of all mappings have one priority';
  return { fields, notice: { message, remedy: 'Remove the entry of priority high.' } };
};

const policies = ['round_robin', 'least_request'];

export const loadBalancer: FieldReader = (value) => {
  const policy = isMap(value) ? value['policy'] : undefined;
  if (typeof policy !== 'string' || policies.includes(policy)) {
    return { fields: { load_balancer: isMap(value) ? { policy } : value } };
  }
  const message = `of policy ${policy} is not supported, so it is round_robin`;
  return { fields: {}, notice: { message, remedy: 'Keep sessions where every address finds them.' } };
};

export const healthChecks: FieldReader = (value) => {
  const list: readonly unknown[] = Array.isArray(value) ? value : [value];
  const kept = list.find((one) => isMap(one) && isMap(one['health_check']) && !('grpc' in one['health_check']));
  const fields = kept === undefined ? {} : { health_checks: withoutHeaders(kept) };
  const isWhole =
    list.length === 1 && kept !== undefined && JSON.stringify(fields.health_checks) === JSON.stringify(kept);
  const message = 'are read as one check over HTTP, without headers of their own';
  return { fields, notice: isWhole ? undefined : { message, remedy: 'Give the service a path to be checked at.' } };
};

function withoutHeaders(check: unknown): unknown {
  if (!isMap(check)) return check;
  const kept = Object.entries(check).filter(([name]) => !/^(?:add|remove)_request_headers$/.test(name));
  return Object.fromEntries(kept.map(([name, value]) => [name, withoutHeaders(value)]));
}

export function addedHeaders(name: string): FieldReader {
  return (value) => {
    if (!isMap(value)) return { fields: { [name]: value } };
    const entries = Object.entries(value);
    const kept = entries.filter(
      ([, given]) => unknownCommand(String(isMap(given) ? given['value'] : given)) === undefined,
    );
    const dropped = entries.filter((entry) => !kept.includes(entry)).map(([header]) => header);
    const message = `leave out ${dropped.join(', ')}: nothing is filled in for Envoy's %…%`;
    const notice = { message, remedy: 'Read X-Forwarded-For, X-Forwarded-Proto or X-Request-Id in the service.' };
    return { fields: { [name]: Object.fromEntries(kept) }, notice: dropped.length === 0 ? undefined : notice };
  };
}

/** What the auth service answers under these names goes to the service there; here they are the client's. */
export const identityHeaders: FieldReader = (value) => {
  const isKept = (name: unknown) => !credentialHeaders.includes(String(name).toLowerCase());
  if (!Array.isArray(value) || value.every(isKept)) return { fields: { allowed_authorization_headers: value } };
  const message = `leave out ${credentialHeaders.join(', ')}: a service gets what the client sent`;
  return {
    fields: { allowed_authorization_headers: value.filter(isKept) },
    notice: { message, remedy: 'Have the auth service answer under a name of its own.' },
  };
};

function isMap(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function mapValues(map: Fields, become: (value: unknown) => unknown): Fields {
  return Object.fromEntries(Object.entries(map).map(([name, value]) => [name, become(value)]));
}
