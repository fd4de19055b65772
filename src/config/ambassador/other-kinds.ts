/** Ambassador's kinds that are not records here: what replaces each, and which of their fields protect requests. */
import { isMap } from '#foundation';
import { didYouMean, type PlacedFault, suggestion, typeName, valueAt } from '../errors.ts';
import { quote } from '../quote.ts';
import { principalFaults } from './addresses.ts';
import { isEmpty } from './readers.ts';

export interface OtherKind {
  /** What to do instead. */
  readonly remedy: string;
  readonly faultsOf: Check;
}

/**
 * Returns the faults of a value at `path`. A part protects requests if Ambassador refuses requests because of it that
 * would otherwise reach a service, or removes or replaces what clients send. Such a part is an error, because nothing
 * applies it here.
 */
type Check = (value: unknown, path: readonly string[]) => readonly PlacedFault[];

type Rows = Readonly<Record<string, Check>>;

/** Reports whether a value turns its field off. */
type IsOff = (value: unknown) => boolean;

const harmless: Check = () => [];

function protects(remedy: string, isOff: IsOff = isEmpty): Check {
  return (value, path) => {
    if (isOff(value)) return [];
    const what = path.length === 0 ? 'this kind' : path.join('.');
    return [{ path, message: `${what} protects requests, and is not supported`, remedy }];
  };
}

/** A map with these fields. An unknown field may be a mistyped one that protects requests. */
function within(rows: Rows): Check {
  return (value, path) => {
    if (!isMap(value)) return isEmpty(value) ? [] : [notAMap(value, path)];
    return Object.entries(value).flatMap(([name, inner]) => {
      const place = [...path, name];
      return Object.hasOwn(rows, name) ? (rows[name]?.(inner, place) ?? []) : [unknownField(name, place, rows)];
    });
  };
}

function notAMap(value: unknown, path: readonly string[]): PlacedFault {
  const message = `${path.join('.') || 'config'} must be a map, not ${typeName(value)}`;
  return { path, message, remedy: 'Indent its fields below it.' };
}

function unknownField(name: string, path: readonly string[], rows: Rows): PlacedFault {
  const known = Object.keys(rows);
  const meant = suggestion(name, known);
  return {
    path,
    message: `unknown key ${quote(name)}${didYouMean(name, known)}`,
    remedy: meant === undefined ? 'Remove it: Ambassador has no such field.' : `Write "${meant}", or remove it.`,
  };
}

/** The fields of every kind. */
const head: Rows = {
  ambassador_id: harmless,
  ambassadorId: harmless,
  metadata_labels: harmless,
  name: harmless,
  namespace: harmless,
};

const httpsOnly =
  'Set TLS_CERT and TLS_KEY, or TLS_DIR, with HTTP_REDIRECT_PORT, or let the proxy in front redirect. Then remove it.';
const clientCertificates =
  'Set TLS_CLIENT_CA for client certificates, and tls in a Mapping for calls to its service. Then remove it.';

/** TLS of a TLSContext, of a Host, or of the Module tls. */
const tls: Rows = {
  alpn_protocols: harmless,
  ca_secret: protects(clientCertificates),
  cacert_chain_file: protects(clientCertificates),
  cert_chain_file: harmless,
  cert_required: protects(clientCertificates),
  cipher_suites: harmless,
  crl_secret: protects(clientCertificates),
  ecdh_curves: harmless,
  max_tls_version: harmless,
  min_tls_version: protects('Set TLS_MIN_VERSION=1.3, then remove it.', (version) => version !== 'v1.3'),
  private_key_file: harmless,
  redirect_cleartext_from: protects(httpsOnly),
  secret: harmless,
  secret_namespacing: harmless,
  sni: harmless,
  v3CRLSecret: protects(clientCertificates),
};

const perMapping = (field: string) => protects(`Write ${field} in each Mapping, then remove it.`);
const bodySize = 'Write max_request_bytes in each Mapping, or set BODY_BYTES_MAX. Then remove it.';

/** The headers of a request may have 16 KiB here, unless HEADER_BYTES_MAX says otherwise. */
const headersKibMax = 16;

/** The options of the Module ambassador. */
const moduleOptions: Rows = {
  add_linkerd_headers: harmless,
  admin_port: harmless,
  allow_chunked_length: harmless,
  auth_enabled: harmless,
  buffer: protects(bodySize),
  buffer_limit_bytes: harmless,
  circuit_breakers: perMapping('circuit_breakers'),
  cluster_idle_timeout_ms: harmless,
  cluster_max_connection_lifetime_ms: harmless,
  cluster_request_timeout_ms: harmless,
  cors: harmless,
  debug_mode: harmless,
  default_label_domain: protects(
    'Write domain in the RateLimitService, then remove it.',
    (domain) => isEmpty(domain) || domain === 'ambassador',
  ),
  default_labels: perMapping('the labels'),
  defaults: perMapping('its fields'),
  diag_port: harmless,
  diagnostics: harmless,
  enable_grpc_http11_bridge: harmless,
  enable_grpc_web: harmless,
  enable_http10: harmless,
  enable_ipv4: harmless,
  enable_ipv6: harmless,
  envoy_log_format: harmless,
  envoy_log_path: harmless,
  envoy_log_type: harmless,
  envoy_validation_timeout: harmless,
  error_response_overrides: harmless,
  forward_client_cert_details: harmless,
  grpc_stats: harmless,
  gzip: harmless,
  header_case_overrides: harmless,
  headers_with_underscores_action: protects(
    'Let the services, or a proxy in front, ignore headers with underscores. Then remove it.',
    (action) => isEmpty(action) || action === 'ALLOW',
  ),
  ip_allow: principalFaults,
  ip_deny: principalFaults,
  keepalive: harmless,
  listener_idle_timeout_ms: harmless,
  liveness_probe: harmless,
  load_balancer: harmless,
  lua_scripts: protects('Let an AuthService or the services do what the scripts do, then remove them.'),
  max_request_headers_kb: protects(
    'Set HEADER_BYTES_MAX, then remove it.',
    (size) => isEmpty(size) || Number(size) >= headersKibMax,
  ),
  merge_slashes: harmless,
  preserve_external_request_id: harmless,
  proper_case: harmless,
  prune_unreachable_routes: harmless,
  readiness_probe: harmless,
  regex_max_size: harmless,
  regex_type: harmless,
  reject_requests_with_escaped_slashes: protects(
    'Leave STRICT_PATHS on, which rejects paths that services could read in another way. Then remove it.',
  ),
  resolver: harmless,
  retry_policy: harmless,
  runtime_flags: harmless,
  server_name: harmless,
  service_port: harmless,
  set_current_client_cert_details: harmless,
  statsd: harmless,
  strip_matching_host_port: harmless,
  suppress_envoy_headers: harmless,
  use_ambassador_namespace_for_service_resolution: harmless,
  use_proxy_proto: harmless,
  use_remote_address: harmless,
  x_forwarded_proto_redirect: protects(httpsOnly),
  xff_num_trusted_hops: harmless,
};

/** The options of the Module tls in Ambassador 0.x. */
const tlsModuleOptions: Rows = {
  client: protects(clientCertificates),
  server: within({ ...tls, enabled: harmless }),
  upstream: harmless,
};

/** The Module authentication of Ambassador 0.x is read as an AuthService. Ambassador knows no other names. */
function moduleFaults(value: unknown): readonly PlacedFault[] {
  const { config, ...rest } = isMap(value) ? value : {};
  const options = moduleName(rest['name']) === 'tls' ? tlsModuleOptions : moduleOptions;
  // Messages name the option alone.
  const inConfig = within(options)(config, []).map((fault) => ({ ...fault, path: ['config', ...fault.path] }));
  return [...within(head)(rest, []), ...inConfig];
}

/** Returns the name of a Module without its namespace. */
export function moduleName(name: unknown): string {
  return String(name).split('.', 1).join('');
}

const byHostname = protects('Write hostname in each Mapping that only one host serves, then remove it.');

const hostFields: Rows = {
  ...head,
  acmeProvider: harmless,
  hostname: harmless,
  mappingSelector: byHostname,
  previewUrl: harmless,
  requestPolicy: within({
    insecure: within({ action: protects(httpsOnly, (action) => action === 'Route'), additionalPort: harmless }),
  }),
  selector: byHostname,
  tls: within(tls),
  tlsContext: harmless,
  tlsSecret: harmless,
};

const listenerFields: Rows = {
  ...head,
  hostBinding: within({ namespace: harmless, selector: byHostname }),
  http2MaxConcurrentStreams: harmless,
  l7Depth: harmless,
  port: harmless,
  protocol: harmless,
  protocolStack: harmless,
  securityModel: harmless,
  statsPrefix: harmless,
};

const resolver: OtherKind = {
  remedy: 'Services are resolved by SERVICE_ADDRESSES and by name.',
  faultsOf: harmless,
};
const log: OtherKind = { remedy: 'Logs are written to standard output.', faultsOf: harmless };
const listener = 'Set HOST and PORT, TLS_CERT and TLS_KEY.';

/** A kind that protects requests as a whole. */
function guard(remedy: string): OtherKind {
  return { remedy, faultsOf: protects(remedy, () => false) };
}

export const otherKinds: Readonly<Record<string, OtherKind>> = {
  BufferService: guard(bodySize),
  CircuitBreaker: guard('Write circuit_breakers in each Mapping, then remove it.'),
  ConsulResolver: resolver,
  DevPortal: { remedy: 'There is no developer portal.', faultsOf: harmless },
  // A Filter does nothing without a FilterPolicy.
  Filter: { remedy: 'Write an AuthService: it protects all mappings that do not bypass it.', faultsOf: harmless },
  FilterPolicy: guard(
    'Let an AuthService check what it checks, then remove it. An AuthService protects all mappings that do not bypass it.',
  ),
  Host: {
    remedy: `${listener} Write hostname in each Mapping that applies to one host.`,
    faultsOf: within(hostFields),
  },
  KubernetesEndpointResolver: resolver,
  KubernetesServiceResolver: resolver,
  Listener: { remedy: listener, faultsOf: within(listenerFields) },
  LogService: log,
  Module: {
    remedy: 'Most of its options are settings here, which config/README.md lists, or fields of each Mapping.',
    faultsOf: moduleFaults,
  },
  OutlierDetection: { remedy: 'Write outlier_detection in each Mapping.', faultsOf: harmless },
  RateLimit: guard('Write the limits in ratelimit/, in the format of envoyproxy/ratelimit, then remove it.'),
  TCPMapping: { remedy: 'Only HTTP is supported.', faultsOf: harmless },
  TLSContext: { remedy: listener, faultsOf: within({ ...head, ...tls, hosts: harmless }) },
  TracingService: log,
  WebApplicationFirewall: {
    remedy: 'Let a firewall in front check requests.',
    // It does nothing without a WebApplicationFirewallPolicy.
    faultsOf: harmless,
  },
  WebApplicationFirewallPolicy: guard('Let a firewall in front check requests, then remove it.'),
};

/** Reports whether a record of this kind protects requests, or may by one of its fields. */
export function mayProtect(kind: string): boolean {
  return Object.hasOwn(otherKinds, kind) && otherKinds[kind]?.faultsOf !== harmless;
}

/** The classes by which Ambassador and Emissary know that an Ingress is for them. */
const ingressClasses = ['ambassador', 'emissary', 'emissary-ingress'];

/**
 * Reports whether an Ingress has routes for Ambassador. They require the credentials that other routes of the same paths
 * may not require.
 */
export function isGuardingIngress(manifest: unknown): boolean {
  const annotation = valueAt(manifest, ['metadata', 'annotations', 'kubernetes.io/ingress.class']);
  const name = annotation ?? valueAt(manifest, ['spec', 'ingressClassName']);
  const routes = ['rules', 'defaultBackend', 'backend'].map((field) => valueAt(manifest, ['spec', field]));
  return valueAt(manifest, ['kind']) === 'Ingress' && ingressClasses.includes(String(name)) && !routes.every(isEmpty);
}
