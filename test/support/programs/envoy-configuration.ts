/** Configures an Envoy with one listener that forwards all requests to one server on this machine. */

export interface EnvoyParts {
  readonly port: number;
  /** The prefix of the paths that are forwarded. @default / */
  readonly prefix?: string;
  /** The port of the server to which requests are forwarded. */
  readonly target: number;
  /** Further fields of the connection manager. */
  readonly manager?: object;
  /** HTTP filters before the router. */
  readonly filters?: readonly object[];
  /** Further fields of the one route. */
  readonly route?: object;
  /** Clusters in addition to the target's. */
  readonly clusters?: readonly object[];
}

/** Returns JSON, which is also YAML. */
export function envoyConfiguration(parts: EnvoyParts): string {
  const { port, prefix = '/', target, manager, filters = [], route, clusters = [] } = parts;
  const routes = [{ match: { prefix }, route: { cluster: 'next', ...route } }];
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

/** @param type the type without `envoy.extensions.filters.http.` */
export function httpFilter(name: string, type: string, fields: object): object {
  return { name: `envoy.filters.http.${name}`, typed_config: typed(`filters.http.${type}`, fields) };
}

/** A rate-limit filter that calls the cluster `limits`. */
export function limitFilter(fields: object): object {
  const service = { transport_api_version: 'V3', grpc_service: { envoy_grpc: { cluster_name: 'limits' } } };
  return httpFilter('ratelimit', 'ratelimit.v3.RateLimit', { ...fields, rate_limit_service: service });
}

/** The cluster of a server on this machine. */
export function envoyCluster(name: string, port: number): object {
  const endpoints = [{ lb_endpoints: [{ endpoint: { address: addressOf(port) } }] }];
  return { name, type: 'STATIC', load_assignment: { cluster_name: name, endpoints } };
}

/** The cluster of a limiter, which uses HTTP/2. */
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
