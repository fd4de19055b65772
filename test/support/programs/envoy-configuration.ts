/** Configures an Envoy with one listener that forwards all requests to one server on this machine. */

interface CertificateFiles {
  readonly file: string;
  readonly keyFile: string;
}

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
  /** Whether the server gets HTTP/2. @default false */
  readonly http2?: boolean;
  /** The file of the server's authority, if it is called over TLS. */
  readonly ca?: string | undefined;
  /** The certificate of the listener, if clients use TLS. */
  readonly tls?: CertificateFiles | undefined;
  /** Clusters in addition to the target's. */
  readonly clusters?: readonly object[];
}

/** Returns JSON, which is also YAML. */
export function envoyConfiguration(parts: EnvoyParts): string {
  const { port, prefix = '/', target, manager, filters = [], route, http2 = false, ca, tls, clusters = [] } = parts;
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
  const chain = { filters: [filter], ...(tls && secureListener(tls)) };
  const listener = { name: 'edge', address: addressOf(port), filter_chains: [chain] };
  const next = { ...(http2 ? http2Cluster : envoyCluster)('next', target), ...(ca && secureCluster(ca)) };
  const allClusters = [next, ...clusters];
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

/** The cluster of a limiter. */
export function limitCluster(port: number): object {
  return http2Cluster('limits', port);
}

/** How many streams most servers accept on a connection. Envoy sends more before it knows, and those are refused. */
const streamsMax = 100;

/** The cluster of a server on this machine, which gets HTTP/2. */
function http2Cluster(name: string, port: number): object {
  const http2_protocol_options = { max_concurrent_streams: streamsMax, allow_connect: true };
  const http2 = { explicit_http_config: { http2_protocol_options } };
  const options = typed('upstreams.http.v3.HttpProtocolOptions', http2);
  return {
    ...envoyCluster(name, port),
    typed_extension_protocol_options: { 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': options },
  };
}

function secureListener({ file, keyFile }: CertificateFiles): object {
  const tls_certificates = [{ certificate_chain: { filename: file }, private_key: { filename: keyFile } }];
  const common_tls_context = { alpn_protocols: ['h2', 'http/1.1'], tls_certificates };
  return transportSocket('DownstreamTlsContext', { common_tls_context });
}

function secureCluster(ca: string): object {
  const common_tls_context = { validation_context: { trusted_ca: { filename: ca } } };
  return transportSocket('UpstreamTlsContext', { common_tls_context });
}

function transportSocket(type: string, context: object): object {
  const name = 'envoy.transport_sockets.tls';
  return { transport_socket: { name, typed_config: typed(`transport_sockets.tls.v3.${type}`, context) } };
}

function typed(type: string, fields: object): object {
  return { '@type': `type.googleapis.com/envoy.extensions.${type}`, ...fields };
}

function addressOf(port: number): object {
  return { socket_address: { address: '127.0.0.1', port_value: port } };
}
