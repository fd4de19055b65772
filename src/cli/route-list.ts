/** The routes, versions and threads that `check` reports: as plain data, and as text with a line for each route. */
import {
  type Configuration,
  type ConfigurationError,
  callsService,
  formatRedirectHost,
  type RouteFacts,
  routeFacts,
  shortened,
  withoutSecrets,
} from '#config';
import { formatSource, type Source } from '#foundation';
import { describeAddressLists } from '#http';
import { listRoutes } from '#routing';
import type { Settings } from '#server/product';
import type { ThreadChoice } from './threads.ts';

/** Plain data with the names of config/README.md, which stay the same from version to version. */
export interface CheckedRoutes {
  /** In matching order. */
  readonly routes: readonly CheckedRoute[];
  readonly versions: readonly CheckedVersion[];
  readonly token_providers: readonly CheckedProvider[];
  /** The lists of client addresses that hold for all routes. */
  readonly addresses: readonly CheckedAddresses[];
  /** The time-outs of routes to services over HTTP that do not set them, in milliseconds. 0 means no limit. */
  readonly timeouts: { readonly timeout_ms: number; readonly idle_timeout_ms: number };
  /** How many threads `serve` uses, and why. */
  readonly threads: ThreadChoice;
}

interface CheckedRoute extends RouteFacts {
  readonly name: string;
  readonly source: string;
  readonly prefix: string;
  readonly conditions: readonly string[];
  /** Undefined for a redirect, and for a route of the Gateway API without a usable backend. */
  readonly service: string | undefined;
  readonly redirect: { readonly status: number; readonly host: string | undefined } | undefined;
  /** Whether the service is called in this process, where time-outs have no effect. */
  readonly in_process: boolean;
}

interface CheckedVersion {
  readonly name: string;
  readonly source: string;
  readonly prefix: string;
  readonly deprecated_at: string | undefined;
  readonly ends_at: string | undefined;
}

interface CheckedProvider {
  readonly name: string;
  readonly source: string;
  readonly issuer: string;
  /** Without its query. Undefined for keys in the record. */
  readonly jwks_uri: string | undefined;
  /** The AuthServices that accept its tokens. */
  readonly auth_services: readonly string[];
}

interface CheckedAddresses {
  /** Undefined for the settings. */
  readonly source: string | undefined;
  readonly allow_addresses: readonly string[];
  readonly deny_addresses: readonly string[];
}

export interface CheckedRoutesParts {
  readonly settings: Pick<Settings, 'upstreamTimeoutMs' | 'upstreamIdleTimeoutMs' | 'allowAddresses' | 'denyAddresses'>;
  readonly threads: ThreadChoice;
  /** Whether a service with this name runs in this process. */
  readonly isLocal: (service: string) => boolean;
}

export function checkedRoutes(
  configuration: Configuration,
  { settings, threads, isLocal }: CheckedRoutesParts,
): CheckedRoutes {
  return {
    routes: listRoutes(configuration.mappings).map(({ mapping, conditions }): CheckedRoute => {
      const { name, prefix, redirect, source } = mapping;
      const service = callsService(mapping) ? mapping.service : undefined;
      return {
        name,
        source: formatSource(source),
        prefix,
        conditions,
        service,
        redirect: redirect && { status: redirect.status, host: formatRedirectHost(redirect) },
        in_process: service !== undefined && isLocal(service),
        ...routeFacts(mapping, configuration),
      };
    }),
    versions: configuration.versions.map(({ name, prefix, deprecatedAtMs, endsAtMs, source }) => ({
      name,
      source: formatSource(source),
      prefix,
      deprecated_at: timeOf(deprecatedAtMs),
      ends_at: timeOf(endsAtMs),
    })),
    token_providers: configuration.jwtProviders.map((provider) => checkedProvider(provider, configuration)),
    addresses: addressLists(configuration, settings),
    timeouts: { timeout_ms: settings.upstreamTimeoutMs, idle_timeout_ms: settings.upstreamIdleTimeoutMs },
    threads,
  };
}

/** The lists for all routes, of the settings and of Ambassador's Modules. */
function addressLists(
  { addresses }: Configuration,
  settings: CheckedRoutesParts['settings'],
): readonly CheckedAddresses[] {
  const all = [{ ...settings, source: undefined }, ...addresses];
  return all
    .filter(({ allowAddresses, denyAddresses }) => allowAddresses.length + denyAddresses.length > 0)
    .map(({ source, allowAddresses, denyAddresses }) => ({
      source: source && formatSource(source),
      allow_addresses: allowAddresses,
      deny_addresses: denyAddresses,
    }));
}

function checkedProvider(
  { name, source, issuer, jwksUri }: Configuration['jwtProviders'][number],
  { authServices }: Configuration,
): CheckedProvider {
  const accepting = authServices.filter(({ providers }) => providers.includes(name));
  return {
    name,
    source: formatSource(source),
    issuer: withoutSecrets(issuer),
    jwks_uri: jwksUri && withoutSecrets(jwksUri),
    auth_services: accepting.map((service) => service.name),
  };
}

function timeOf(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : new Date(ms).toISOString().replace('.000Z', 'Z');
}

/** Returns errors or notices as plain data. Names of files in the working directory are relative to it. */
export function findingsOf(found: readonly ConfigurationError[]) {
  const place = ({ file, line }: Source) => ({
    file: shortened(file, process.cwd()),
    line: line === 0 ? undefined : line,
  });
  return found.map(({ source, record, message, other, remedy }) => {
    return { ...place(source), record, message, remedy, other: other && place(other) };
  });
}

/** Ends with a line break. */
export function formatRoutes({
  routes,
  versions,
  token_providers: providers,
  addresses,
  timeouts,
  threads,
}: CheckedRoutes): string {
  const rows = routes.map((route) => [matchText(route), targetText(route), accessText(route)] as const);
  const widths = [0, 1, 2].map((column) => columnWidth(rows.map((row) => row[column] ?? '')));
  const lines = routes.flatMap((route, index) => {
    const [match = '', target = '', access = ''] = (rows[index] ?? []).map((cell, column) =>
      cell.padEnd(widths[column] ?? 0),
    );
    return [`${match}  ->  ${target}  ${access}  (Mapping ${route.name}, ${route.source})`, ...detailLines(route)];
  });
  const isRemote = routes.some(({ service, in_process: isLocal }) => service !== undefined && !isLocal);
  return `${[
    ...lines,
    ...versions.map(versionLine),
    ...providers.map(providerLine),
    ...addresses.map(addressesLine),
    ...(isRemote ? [timeoutsLine(timeouts)] : []),
    `serve uses ${threads.count} ${threads.count === 1 ? 'thread' : 'threads'}: ${threads.reason}`,
  ].join('\n')}\n`;
}

/** A longer text than this does not widen its column. */
const columnMax = 40;

function columnWidth(texts: readonly string[]): number {
  return Math.max(0, ...texts.map(({ length }) => length).filter((length) => length <= columnMax));
}

function matchText({ prefix, conditions }: CheckedRoute): string {
  return [prefix, ...conditions].join('  ');
}

function targetText({ service, redirect }: CheckedRoute): string {
  if (redirect === undefined) return service ?? 'no backend (500)';
  return redirect.host === undefined
    ? `redirect (${redirect.status})`
    : `redirect to ${redirect.host} (${redirect.status})`;
}

function accessText({ auth }: CheckedRoute): string {
  if (auth.open) return 'open';
  return auth.key_header === undefined ? `auth ${auth.name}` : `auth ${auth.name}, keys in ${auth.key_header}`;
}

function detailLines({ claims, limits, cors, upgrades, fields }: CheckedRoute): readonly string[] {
  const details = {
    requires: claims,
    limits: limits.map(({ descriptor, limit }) => `${descriptor}: ${limit ?? 'unknown here'}`),
    cors: cors === undefined ? [] : [...cors.origins, ...(cors.credentials ? ['with credentials'] : [])],
    upgrades,
    sets: Object.entries(fields).map(([name, value]) => (value === '…' ? name : `${name}: ${String(value) || '""'}`)),
  };
  // A limit has commas of its own.
  return Object.entries(details).flatMap(([name, texts]) =>
    texts.length === 0 ? [] : [`    ${name.padEnd(8)}  ${texts.join(name === 'limits' ? '; ' : ', ')}`],
  );
}

function versionLine({ name, source, prefix, deprecated_at: deprecated, ends_at: ends }: CheckedVersion): string {
  const from = (what: string, time: string | undefined) => (time === undefined ? [] : [`${what} from ${time}`]);
  return `${prefix}  ${[...from('deprecated', deprecated), ...from('410', ends)].join(', ')}  (Version ${name}, ${source})`;
}

function providerLine({ name, source, issuer, jwks_uri: uri, auth_services: services }: CheckedProvider): string {
  const keys = uri === undefined ? 'in the record' : `at ${uri}`;
  const use = services.length === 0 ? 'unused' : `for AuthService ${services.join(', ')}`;
  return `tokens of ${issuer}  keys ${keys}, ${use}  (JwtProvider ${name}, ${source})`;
}

function addressesLine({ source, allow_addresses, deny_addresses }: CheckedAddresses): string {
  const lists = describeAddressLists({ allowAddresses: allow_addresses, denyAddresses: deny_addresses });
  return `all routes  clients ${lists}  (${source ?? 'ALLOW_ADDRESSES and DENY_ADDRESSES'})`;
}

function timeoutsLine({ timeout_ms: timeout, idle_timeout_ms: idle }: CheckedRoutes['timeouts']): string {
  const text = (ms: number) => (ms === 0 ? 'none' : `${ms} ms`);
  return `time-out ${text(timeout)}, idle time-out ${text(idle)}, unless a route sets them`;
}
