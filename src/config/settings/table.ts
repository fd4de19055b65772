/** The table of settings: default, kind and help line, for the environment, the library's options and `--help`. */
import { isHost, isNetwork } from '../fields/addresses.ts';
import { isUserName } from '../fields/credentials.ts';
import {
  addressBook,
  bytes,
  choiceKind,
  count,
  days,
  delayMs,
  flag,
  listKind,
  port,
  textKind,
  timeoutMs,
} from './kinds.ts';

const address = textKind(isHost, 'a host name or an IP address, without brackets or port');
const directory = textKind((text) => text !== '', 'a path');
const file = textKind((text) => text !== '', 'the path of a PEM file');
const domain = textKind(
  (text) => /^[a-z0-9-]+(?:\.[a-z0-9-]+)*$/i.test(text),
  'a domain name, for example gateway.local',
);
const database = textKind(isDatabaseUrl, 'sqlite:<path>, sqlite::memory: or postgres://user:password@host/name');
const redis = textKind(isRedisUrl, 'redis://host:6379 or rediss://user:password@host:6379');
const baseUrl = textKind(
  isBaseUrl,
  'an http or https URL without query, fragment, credentials or slash at the end, for example https://travel.example',
);
const userNames = listKind(isUserName, 'names of users');
const networks = listKind(isNetwork, 'addresses or networks such as 10.0.0.0/8');
const logLevel = choiceKind(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']);
const accessLog = choiceKind(['json', 'combined', 'off']);
const origins = listKind(isOrigin, 'origins such as https://app.example (no path, no slash at the end) or *');

/** In camelCase, as the library's options; the environment variable is the same name in capitals (`RATELIMIT_PORT`). */
export const settingTable = {
  host: address('127.0.0.1', 'Address of every listener that has none of its own.'),
  port: port(8080, 'Port of the gateway (HTTP); 0 picks a free one.'),
  ratelimitHost: address(undefined, 'Address of the rate-limit service, gRPC and HTTP; unset: HOST.'),
  ratelimitPort: port(8081, 'Port of the rate-limit service (gRPC); 0 picks a free one.'),
  authHost: address(undefined, 'Address of the auth service; unset: HOST.'),
  authPort: port(8082, 'Port of the auth service (HTTP); 0 picks a free one.'),
  adminHost: address(undefined, 'Address of the admin port; unset: HOST.'),
  adminPort: port(
    undefined,
    'Port that serves metrics and probes (HTTP) without credentials; 0 picks a free one, unset: none.',
  ),
  configDir: directory('./config', 'Directory with services/, ratelimit/, users.yaml and demo.yaml.'),
  databaseUrl: database('sqlite:./data/frontdesk.db', 'Where bookings, messages and accounts are kept.'),
  databasePool: count(10, 'Connections to PostgreSQL that this process keeps at most.'),
  databaseTimeoutMs: timeoutMs(
    5000,
    'How long a request waits for a connection to PostgreSQL, for a statement there, or for another writer of the SQLite file, in milliseconds.',
  ),
  redisUrl: redis(
    undefined,
    'Where rate limits are counted by several processes together, in Redis 6 or newer; unset: in memory.',
  ),
  redisTimeoutMs: timeoutMs(50, 'How long a rate-limit decision waits for Redis, in milliseconds.'),
  ratelimitHttpPort: port(
    undefined,
    'Port of the rate-limit service over HTTP, with its metrics; 0 picks a free one, unset: none.',
  ),
  ratelimitKeysMax: count(100_000, 'Most rate-limit counters that are kept in memory, each of 250 to 400 bytes.'),
  ratelimitCountDenied: flag(false, 'Counts a denied request against every limit, as envoyproxy/ratelimit does.'),
  ratelimitFailOpen: flag(true, 'Answers OK when Redis gives no answer; false: an error.'),
  ratelimitResponseHeaders: flag(false, 'Has the rate-limit service send RateLimit-* headers for the proxy to add.'),
  logLevel: logLevel('info', 'Least level that is logged; the access log is at info.'),
  accessLog: accessLog(
    'json',
    "A line for each request: json; combined, Apache's format, between the other lines, which stay JSON; off.",
  ),
  tlsCert: file(undefined, 'Certificate chain (PEM) that turns the gateway to HTTPS; goes with TLS_KEY.'),
  tlsKey: file(undefined, 'Private key (PEM) of TLS_CERT.'),
  adminUsers: userNames(
    [],
    'Users who may see diagnostics, explanations and metrics, as the AuthService names them; beside the role admin in users.yaml, which counts where this process is the auth service.',
  ),
  trustedProxies: networks(
    [],
    'Proxies whose X-Forwarded-* headers are trusted, and which must not pass on what clients send as X-Forwarded-Host, -Proto, -Prefix or -Root: addresses or networks, with commas between them. Without it all clients behind a proxy have its address.',
  ),
  gatewayDomain: domain('gateway.local', 'First part of the annotation key <gateway domain>/config.'),
  publicUrl: baseUrl(undefined, "Base of the URLs in answers; unset: the request's scheme and host."),
  corsOrigins: origins([], 'Origins that may read answers in a browser.'),
  serviceAddresses: addressBook(
    {},
    'Addresses of services that are not in this process, for example hotel=10.0.0.1:9001; repeat a name that has several.',
  ),
  allowDemoUsers: flag(false, 'Lets a server that listens beyond loopback start with the demo users.'),
  strictPaths: flag(
    false,
    'Refuses (400) a path that a service may read as one with other authentication: in another case, with an encoded slash, a ; or a dot at the end.',
  ),
  bodyBytesMax: bytes(
    undefined,
    'Largest request body to a service across HTTP, in bytes, where a Mapping has no max_request_bytes; unset: no limit.',
  ),
  headerBytesMax: bytes(16_384, 'Largest request line and headers together, in bytes.'),
  bookingHoldsMax: count(10, 'Pending bookings that a user may have at once, of hotels and of cars each.'),
  bookingDaysMax: days(90, 'Nights or days of one booking.'),
  bookingUnitsMax: count(20, 'Rooms, or cars, that the bookings of one user may take on the same day.'),
  headerTimeoutMs: timeoutMs(10_000, 'Until the request headers have arrived, in milliseconds.'),
  requestTimeoutMs: timeoutMs(
    30_000,
    'Until the whole request has arrived, in milliseconds; one to a service across HTTP may take as long as it flows.',
  ),
  keepAliveTimeoutMs: timeoutMs(72_000, 'How long an idle connection is kept, in milliseconds.'),
  connectionsMax: count(
    undefined,
    'Most connections of clients, all listeners but the admin port together; unset: 45 % of the files that the process may open.',
  ),
  pipelineMax: count(8, 'Requests of a connection that are open at once; later ones wait, unread.'),
  upstreamTimeoutMs: timeoutMs(
    60_000,
    "Until a service's response headers, in milliseconds; a Mapping's timeout_ms wins.",
  ),
  upstreamConnectTimeoutMs: timeoutMs(3000, 'Until a connection to a service is made, in milliseconds.'),
  upstreamIdleTimeoutMs: timeoutMs(
    60_000,
    'How long a body may pause on its way from or to a service, in milliseconds, where a Mapping has no idle_timeout_ms; also how long an answer waits for a client that reads nothing.',
  ),
  drainMs: delayMs(
    0,
    'How long a stop goes on serving while `check_ready` is 503, until load balancers have noticed, in milliseconds.',
  ),
  shutdownTimeoutMs: timeoutMs(10_000, 'How long a shutdown waits for open requests, in milliseconds.'),
} as const;

export type SettingName = keyof typeof settingTable;

/** The environment variable of a setting: `ratelimitPort` is `RATELIMIT_PORT`. */
export function variableOf(name: string): string {
  return name.replace(/[A-Z]/g, (capital) => `_${capital}`).toUpperCase();
}

/** Every variable, with the setting that it sets. */
export function variables(): readonly (readonly [variable: string, setting: string])[] {
  return Object.keys(settingTable).map((name) => [variableOf(name), name]);
}

/** One row of the help text; `default` is '' when unset. */
export interface SettingRow {
  readonly variable: string;
  readonly default: string;
  readonly expects: string;
  readonly description: string;
}

/** The table for people, in reading order. */
export function listSettings(): readonly SettingRow[] {
  return Object.entries(settingTable).map(([name, { default: value, expects, description }]) => ({
    variable: variableOf(name),
    default: value === undefined || typeof value === 'object' ? '' : String(value),
    expects,
    description,
  }));
}

/** The same for a terminal, a line each. */
export function formatSettings(): string {
  const rows = listSettings();
  const width = Math.max(...rows.map(({ variable }) => variable.length));
  return rows
    .map(
      ({ variable, description, default: value }) =>
        `  ${variable.padEnd(width)}  ${description}${value === '' ? '' : ` [${value}]`}`,
    )
    .join('\n');
}

function isDatabaseUrl(text: string): boolean {
  return /^sqlite:.+/.test(text) || (/^postgres(?:ql)?:\/\/./.test(text) && URL.canParse(text));
}

function isRedisUrl(text: string): boolean {
  return /^rediss?:\/\/./.test(text) && URL.canParse(text);
}

function isBaseUrl(text: string): boolean {
  return /^https?:\/\/[^/?#@\s]+(?:\/[^/?#@\s]+)*$/.test(text) && URL.canParse(text);
}

function isOrigin(text: string): boolean {
  return text === '*' || (/^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text);
}
