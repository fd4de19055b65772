/** The gateway's table of settings, with default, kind and description, and how such a table is shown in `--help`. */
import { isUserName } from '#auth/password-hash';
import { parseRedisUrl, redisUrlForms } from '#ratelimit/redis-url';
import { isHost, isNetwork } from '../fields/addresses.ts';
import { originFault } from '../fields/origins.ts';
import {
  addressBook,
  bytes,
  choiceKind,
  count,
  delayMs,
  flag,
  listKind,
  numberKind,
  port,
  type SettingTable,
  textKind,
  timeoutMs,
} from './kinds.ts';

const address = textKind(isHost, 'a host name or an IP address, without brackets or port');
const directory = textKind((text) => text !== '', 'a path');
const file = textKind(
  (text) => text !== '' && !text.includes('-----BEGIN '),
  'the path of a PEM file, not its contents',
);
const domain = textKind(
  (text) => /^[a-z0-9-]+(?:\.[a-z0-9-]+)*$/i.test(text),
  'a domain name, for example gateway.local',
);
const redis = textKind((text) => parseRedisUrl(text) !== undefined, redisUrlForms);
const baseUrl = textKind(
  isBaseUrl,
  'an http or https URL without query, fragment, credentials or trailing slash, for example https://api.example',
);
const userNames = listKind(isUserName, 'names of users');
const networks = listKind(isNetwork, 'addresses or networks such as 10.0.0.0/8');
const threads = numberKind(1, 256);
const mappings = numberKind(1, 1_000_000);
const addressSource = choiceKind(['endpoints', 'service']);
const namespaces = listKind((text) => /^[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?$/.test(text), 'names of namespaces');
const gatewayAddresses = listKind(isHost, 'IP addresses or host names');
const logLevel = choiceKind(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']);
const accessLog = choiceKind(['text', 'json', 'combined', 'off']);
const tlsVersion = choiceKind(['1.2', '1.3']);
const clientAuth = choiceKind(['require', 'request']);
const portOfUrl = numberKind(1, 65535);
const origins = listKind(
  (text) => originFault(text) === undefined,
  'origins such as https://app.example or https://*.app.example (no path or trailing slash) or *',
);

/** The settings of the gateway, the limiter and the auth service, by their camelCase names. */
export const gatewaySettings = {
  host: address('127.0.0.1', 'Default address of all listeners.'),
  port: port(8080, 'Port of the gateway (HTTP); 0 picks a free one.'),
  ratelimitHost: address(undefined, 'Address of the rate-limit service (gRPC and HTTP); HOST by default.'),
  ratelimitPort: port(8081, 'Port of the rate-limit service (gRPC); 0 picks a free one.'),
  authHost: address(undefined, 'Address of the auth service; HOST by default.'),
  authPort: port(8082, 'Port of the auth service (HTTP and gRPC); 0 picks a free one.'),
  adminHost: address(undefined, 'Address of the admin port; HOST by default.'),
  adminPort: port(
    undefined,
    'Port for metrics and probes (HTTP) without credentials; 0 picks a free one. Not opened by default.',
  ),
  configDir: directory('./config', 'Directory with services/, ratelimit/, users.yaml and demo.yaml.'),
  gatewayDomain: domain('gateway.local', 'First part of the annotation key <gateway domain>/config.'),
  kubernetes: flag(
    false,
    'Reads records and the addresses of services from a Kubernetes cluster: in a pod with its service account, elsewhere with the current context of KUBECONFIG. Limits, users and certificates stay files.',
  ),
  kubernetesNamespaces: namespaces(
    [],
    'Namespaces whose records are read, in addition to that of frontdesk and the trusted ones; all by default.',
  ),
  kubernetesTrustedNamespaces: namespaces(
    [],
    'Namespaces whose AuthServices, JwtProviders, RateLimitServices and Modules count, and whose records may name files and this machine, in addition to that of frontdesk.',
  ),
  kubernetesMappingsMax: mappings(
    2000,
    'Maximum Mappings of the objects of one namespace together, unless it is trusted; a regular expression counts as five more, and 4,000 characters of one as another. They count from the oldest object, and those that do not fit are refused.',
  ),
  kubernetesAddresses: addressSource(
    'endpoints',
    'How services of the cluster are called: endpoints, at the addresses of their pods, so that load balancing and health checks apply; or service, at the cluster IP.',
  ),
  kubernetesGatewayApi: flag(
    false,
    'Serves the Gateways, HTTPRoutes and GRPCRoutes of the Gateway API, too, whose GatewayClass has the controllerName gateway.local/gateway-controller.',
  ),
  kubernetesGatewayAddresses: gatewayAddresses(
    [],
    'Addresses at which clients reach the Gateways, which their status shows: IP addresses or host names.',
  ),
  serviceAddresses: addressBook(
    {},
    'Addresses of services in other processes, by the name or host in the records, for example orders=10.0.0.1:9001; repeat a name to give it several addresses.',
  ),
  redisUrl: redis(
    undefined,
    'Redis 6 or newer, in which several processes share their rate-limit counters; in memory by default. redis+sentinel://host:26379,host2:26379/NAME finds the primary NAME through its Sentinels; rediss uses TLS.',
  ),
  redisTimeoutMs: timeoutMs(50, 'How long a rate-limit decision waits for Redis, in milliseconds.'),
  redisTlsCa: file(
    undefined,
    'Authorities (PEM) that may have issued the certificate of Redis, instead of public ones.',
  ),
  redisTlsCert: file(
    undefined,
    'Certificate chain (PEM) with which frontdesk connects to Redis; requires REDIS_TLS_KEY.',
  ),
  redisTlsKey: file(undefined, 'Private key (PEM) of the certificate in REDIS_TLS_CERT.'),
  ratelimitHttpPort: port(
    undefined,
    'Port of the rate-limit service over HTTP, with its metrics; 0 picks a free one. Not opened by default.',
  ),
  ratelimitKeysMax: count(100_000, 'Maximum rate-limit counters in memory, of 40 bytes each.'),
  ratelimitCountDenied: flag(false, 'Counts a denied request against every limit, as envoyproxy/ratelimit does.'),
  ratelimitFailOpen: flag(true, 'Allows requests when Redis does not respond; if false, returns an error.'),
  ratelimitResponseHeaders: flag(false, 'Has the rate-limit service send RateLimit-* headers for the proxy to add.'),
  logLevel: logLevel(
    'info',
    'Lowest level that is logged: trace, debug, info, warn, error, fatal or silent. The access log has the level info.',
  ),
  accessLog: accessLog(
    undefined,
    "Format of the access log: text, for people; json; combined, which is Apache's format; off. By default text on a terminal and json otherwise. With text and json all other log lines have this format too, and with combined and off the default one.",
  ),
  tlsCert: file(undefined, 'Certificate chain (PEM) for HTTPS at the gateway; requires TLS_KEY.'),
  tlsKey: file(undefined, 'Private key (PEM) of the certificate in TLS_CERT.'),
  tlsDir: directory(
    undefined,
    'Directory with certificates for several hosts, chosen by the name that a client asks for (SNI): NAME.crt with NAME.key, or folders with tls.crt and tls.key, or fullchain.pem and privkey.pem. Clients that ask for none of their hosts get TLS_CERT, or the first one.',
  ),
  tlsPort: port(
    undefined,
    'Port of the HTTPS listeners of Gateways (KUBERNETES_GATEWAY_API), beside PORT for those of HTTP; 0 picks a free one. Not opened by default.',
  ),
  tlsMinVersion: tlsVersion('1.2', 'Lowest version of TLS at the gateway: 1.2 or 1.3.'),
  tlsClientCa: file(
    undefined,
    "Authorities (PEM) of clients' certificates. Clients need one, whose subject services get in X-Client-Cert-Subject.",
  ),
  tlsClientAuth: clientAuth(
    undefined,
    'What happens to a client without a certificate of TLS_CLIENT_CA: require closes its connection, which is the default; request serves it without X-Client-Cert-Subject.',
  ),
  httpRedirectPort: port(
    undefined,
    'Port (HTTP) that redirects to HTTPS, for the hosts of certificates and Mappings; 0 picks a free one. Not opened by default.',
  ),
  httpRedirectTo: portOfUrl(
    undefined,
    'Port in the URLs of these redirects, if clients reach PORT through another one, for example 443; PORT by default.',
  ),
  adminUsers: userNames(
    [],
    'Users who may see diagnostics, explanations and metrics, by the names from the AuthService. Users with the role admin in users.yaml may too, if this process is the auth service.',
  ),
  trustedProxies: networks(
    [],
    'Proxies whose X-Forwarded-* headers are trusted: addresses or networks. They must not forward X-Forwarded-Host, -Proto, -Prefix or -Root headers from clients. They may also send headers such as CF-Connecting-IP and X-HTTP-Method-Override and, to a process without the gateway, the user. Without this setting, all clients behind a proxy have the address of the proxy.',
  ),
  proxyProtocol: flag(
    false,
    'Reads the PROXY protocol (1 and 2) on each connection to the gateway, before TLS and HTTP. Connections without it, and those that are not from TRUSTED_PROXIES, are closed. The client that it names is then the peer of the connection.',
  ),
  allowAddresses: networks(
    [],
    'Clients that may come to the gateway, by address or network; all by default. Others get 403. allow_addresses in a Mapping applies as well.',
  ),
  denyAddresses: networks([], 'Clients that may not come to the gateway, even if ALLOW_ADDRESSES has them.'),
  publicUrl: baseUrl(undefined, "Base of the URLs in responses; the request's scheme and host by default."),
  corsOrigins: origins(
    [],
    'Origins that may read responses in a browser, such as https://*.example.com, or * for all.',
  ),
  allowDemoUsers: flag(false, 'Allows the demo users on a server that does not listen on loopback only.'),
  strictPaths: flag(
    true,
    'Rejects (400) a path that a service may treat as a path with different protection: in another case, with an encoded slash, with a ; or with a trailing dot.',
  ),
  bodyBytesMax: bytes(
    undefined,
    'Maximum request body to a service over HTTP, in bytes, for mappings without max_request_bytes; no limit by default.',
  ),
  compress: flag(
    true,
    "Compresses the responses of frontdesk's own services, pages, documents and metrics, unless a Mapping says compress: false.",
  ),
  http2: flag(
    true,
    'Serves HTTP/2 beside HTTP/1.1: over TLS to clients that choose it, without TLS to clients that begin with it.',
  ),
  headerBytesMax: bytes(16_384, 'Maximum size of the request line and headers together, in bytes.'),
  headerTimeoutMs: timeoutMs(10_000, 'How long the request headers may take to arrive, in milliseconds.'),
  requestTimeoutMs: timeoutMs(
    30_000,
    'How long the whole request may take to arrive, in milliseconds. A request to a service over HTTP may take longer as long as data keeps arriving.',
  ),
  keepAliveTimeoutMs: timeoutMs(72_000, 'How long an idle connection is kept, in milliseconds.'),
  connectionsMax: count(
    undefined,
    'Maximum client connections of all listeners together, except the admin port; by default 45 % of the files that the process may open, not counting 48 for itself.',
  ),
  pipelineMax: count(
    8,
    'Maximum concurrent requests of a connection; later ones wait, unread. Only GET, HEAD and OPTIONS without a body run concurrently.',
  ),
  upstreamTimeoutMs: timeoutMs(
    60_000,
    "How long to wait for a service's response headers, in milliseconds; timeout_ms in a Mapping takes precedence.",
  ),
  upstreamConnectTimeoutMs: timeoutMs(3000, 'How long to wait for a connection to a service, in milliseconds.'),
  upstreamIdleTimeoutMs: timeoutMs(
    60_000,
    'How long a body from or to a service may pause, in milliseconds, for mappings without idle_timeout_ms. Also how long a response waits for a client that does not read it.',
  ),
  upstreamHeaderBytesMax: bytes(
    16_384,
    'Maximum size of the status line and headers of a response from a service or an auth service over HTTP, in bytes.',
  ),
  threads: threads(
    undefined,
    'Threads that serve requests: by default one for each core, at most one for each 128 MiB of the memory limit, and one with --demo. Always one with a database in memory, in a process of `frontdesk split`, and on a system that does not distribute the connections of a port, such as macOS and Windows.',
  ),
  drainMs: delayMs(
    0,
    'How long a shutdown keeps serving requests while `check_ready` returns 503, so that load balancers notice, in milliseconds.',
  ),
  shutdownTimeoutMs: timeoutMs(10_000, 'How long a shutdown waits for open requests, in milliseconds.'),
} as const;

/** Returns the environment variable of a setting: `RATELIMIT_PORT` for `ratelimitPort`. */
export function variableOf(name: string): string {
  return name.replace(/[A-Z]/g, (capital) => `_${capital}`).toUpperCase();
}

/** Lists the environment variables with their settings. */
export function variables(table: SettingTable): readonly (readonly [variable: string, setting: string])[] {
  return Object.keys(table).map((name) => [variableOf(name), name]);
}

/** One row of the help text. `default` is '' if there is none. */
export interface SettingRow {
  readonly variable: string;
  readonly default: string;
  readonly expects: string;
  readonly description: string;
}

/** Lists the settings for documentation, in reading order. */
export function listSettings(table: SettingTable): readonly SettingRow[] {
  return Object.entries(table).map(([name, { default: value, expects, description }]) => ({
    variable: variableOf(name),
    default: value === undefined || typeof value === 'object' ? '' : String(value),
    expects,
    description,
  }));
}

/** Formats the settings for a terminal, one per line. */
export function formatSettings(table: SettingTable, nameWidth = 0): string {
  const rows = listSettings(table);
  const width = Math.max(nameWidth, ...rows.map(({ variable }) => variable.length));
  return rows
    .map(
      ({ variable, description, default: value }) =>
        `  ${variable.padEnd(width)}  ${description}${value === '' ? '' : ` [${value}]`}`,
    )
    .join('\n');
}

function isBaseUrl(text: string): boolean {
  return /^https?:\/\/[^/?#@\s]+(?:\/[^/?#@\s]+)*$/.test(text) && URL.canParse(text);
}
