/** What becomes of the fields of Ambassador's records; those that are not listed mean the same in ours. */
import {
  addedHeaders,
  circuitBreakers,
  exactPrefix,
  healthChecks,
  host,
  identityHeaders,
  labels,
  loadBalancer,
  redirectOnly,
  rewrite,
  secured,
  shorthand,
  tls,
} from './ambassador-readers.ts';

export type Fields = Readonly<Record<string, unknown>>;

export interface Notice {
  /** Goes behind the name of the field. */
  readonly message: string;
  readonly remedy: string;
}

/** The fields that stand in the place of one, and a notice where they do not say all that it said. */
export interface Reading {
  readonly fields: Fields;
  readonly notice?: Notice | undefined;
}

/** `all` are the fields of the record. */
export type FieldReader = (value: unknown, all: Fields) => Reading;

export type FieldReaders = Readonly<Record<string, FieldReader>>;

/** Nobody misses it while it is off. */
function ignored(why: string, remedy = 'Remove it, if it is not needed any more.'): FieldReader {
  return (value) => ({
    fields: {},
    notice: [false, '', 'default'].some((off) => value === off)
      ? undefined
      : { message: `is not supported: ${why}`, remedy },
  });
}

/** It says what happens here anyway. */
const silent: FieldReader = () => ({ fields: {} });

const everywhere = {
  add_linkerd_headers: ignored('headers of Linkerd are not added'),
  // Records that are for another instance are left out as a whole.
  ambassador_id: silent,
  stats_name: ignored('the metrics here have names of their own'),
  tls,
} as const;

export const mappingReaders: FieldReaders = {
  ...everywhere,
  add_request_headers: addedHeaders('add_request_headers'),
  add_response_headers: addedHeaders('add_response_headers'),
  auth_context_extensions: ignored('it is for auth services that speak gRPC'),
  auto_host_rewrite: silent,
  bypass_error_response_overrides: silent,
  circuit_breaker: ignored('it names a record of Ambassador 0.x', 'Write circuit_breakers.'),
  circuit_breakers: circuitBreakers,
  cluster_idle_timeout_ms: ignored('how long idle connections are kept is the same for all services'),
  cluster_max_connection_lifetime_ms: ignored('connections to services have no longest life'),
  cluster_tag: ignored('the metrics here have names of their own'),
  dns_type: ignored('names are looked up as the system does it'),
  docs: ignored('there is no developer portal'),
  enable_ipv4: silent,
  enable_ipv6: silent,
  envoy_override: ignored('there is no Envoy here'),
  error_response_overrides: ignored('errors have one form here', "README's table of problems shows it."),
  grpc: ignored('services are called over HTTP/1.1', 'Give the service a port for HTTP/1.1.'),
  health_checks: healthChecks,
  host,
  keepalive: ignored('TCP keep-alive is left to the system'),
  labels,
  load_balancer: loadBalancer,
  modules: ignored('a Mapping says all of it'),
  outlier_detection: (value, all) =>
    typeof value === 'string'
      ? ignored('it names a record of Ambassador 0.x')(value, all)
      : { fields: { outlier_detection: value } },
  path_redirect: redirectOnly('path_redirect'),
  prefix: exactPrefix,
  prefix_redirect: redirectOnly('prefix_redirect'),
  priority: ignored('the requests of all mappings have one priority'),
  rate_limits: ignored('it is of Ambassador 0.x', 'Write labels.'),
  redirect_response_code: redirectOnly('redirect_response_code'),
  regex_redirect: redirectOnly('regex_redirect'),
  resolver: ignored('services are found by SERVICE_ADDRESSES and by name', 'List its addresses in SERVICE_ADDRESSES.'),
  respect_dns_ttl: silent,
  rewrite,
  service: secured('service'),
  use_websocket: shorthand('allow_upgrade', ['websocket']),
};

export const authServiceReaders: FieldReaders = {
  ...everywhere,
  allow_request_body: shorthand('include_body', { max_bytes: 4096, allow_partial: true }),
  allowed_authorization_headers: identityHeaders,
  auth_service: secured('auth_service'),
  circuit_breakers: ignored('an auth service has none'),
  protocol_version: silent,
};

export const rateLimitServiceReaders: FieldReaders = {
  ...everywhere,
  grpc: ignored('a denied gRPC request is told as any other'),
  protocol_version: silent,
  tls: ignored('the rate-limit service is called in clear text', 'Put both on one machine or one network.'),
};
