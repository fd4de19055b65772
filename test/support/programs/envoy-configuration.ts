/** The configuration of an Envoy with one listener, which passes all requests on to one server of this machine. */

export interface EnvoyParts {
  readonly port: number;
  /** The port of the next server. */
  readonly target: number;
  /** Further fields of the connection manager. */
  readonly manager?: object;
  /** HTTP filters before the router. */
  readonly filters?: readonly object[];
  /** Further fields of the one route. */
  readonly route?: object;
  /** Beside that of the target. */
  readonly clusters?: readonly object[];
}

/** JSON, which is YAML. */
export function envoyConfiguration({ port, target, manager, filters = [], route, clusters = [] }: EnvoyParts): string {
  const routes = [{ match: { prefix: '/' }, route: { cluster: 'next', ...route } }];
  const connectionManager = {
    stat_prefix: 'edge',
    ...manager,
    http_filters: [...filters, httpFilter('router', 'router.v3.Router', {})],
    route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] },
  };
  const filter = {
    name: 'envoy.filters.network.http_connection_manager',
    typed_config: typed('filters.network.http_connection_manager.v3.HttpConnectionManager', connectionManager),
  };
  const listener = { name: 'edge', address: addressOf(port), filter_chains: [{ filters: [filter] }] };
  const allClusters = [envoyCluster('next', target), ...clusters];
  return JSON.stringify({ static_resources: { listeners: [listener], clusters: allClusters } });
}

/** `type`: what follows `envoy.extensions.filters.http.`. */
export function httpFilter(name: string, type: string, fields: object): object {
  return { name: `envoy.filters.http.${name}`, typed_config: typed(`filters.http.${type}`, fields) };
}

/** Asks the cluster `limits`. */
export function limitFilter(fields: object): object {
  const service = { transport_api_version: 'V3', grpc_service: { envoy_grpc: { cluster_name: 'limits' } } };
  return httpFilter('ratelimit', 'ratelimit.v3.RateLimit', { ...fields, rate_limit_service: service });
}

/** A server of this machine. */
export function envoyCluster(name: string, port: number): object {
  const endpoints = [{ lb_endpoints: [{ endpoint: { address: addressOf(port) } }] }];
  return { name, type: 'STATIC', load_assignment: { cluster_name: name, endpoints } };
}

/** That of a limiter, which speaks HTTP/2. */
export function limitCluster(port: number): object {
  const http2 = { explicit_http_config: { http2_protocol_options: {} } };
  const options = typed('upstreams.http.v3.HttpProtocolOptions', http2);
  return {
    ...envoyCluster('limits', port),
    typed_extension_protocol_options: { 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': options },
  };
}

function typed(type: string, fields: object): object {
  return { '@type': `type.googleapis.com/envoy.extensions.${type}`, ...fields };
}

function addressOf(port: number): object {
  return { socket_address: { address: '127.0.0.1', port_value: port } };
}
