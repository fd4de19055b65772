/** What the gateway believes, as data: the same for the page and for machines. */
import type { ConfigurationError, Limit, LimitDescriptor, LimitDomain, Source, Version } from '#config';
import type { AuthCounts, GatewaySnapshot, LimitCounts, Route } from '#gateway';

export interface Diagnostics {
  readonly version: string;
  readonly uptime_seconds: number;
  readonly configuration: ConfigurationRow;
  readonly routes: readonly RouteRow[];
  readonly services: readonly ServiceRow[];
  readonly versions: readonly VersionRow[];
  readonly limits: readonly LimitRow[];
  readonly errors: readonly ErrorRow[];
  /** What is right, and yet not what a reader of the file might expect. */
  readonly notices: readonly ErrorRow[];
  readonly auth: Readonly<AuthCounts> | undefined;
  readonly ratelimit: Readonly<LimitCounts> | undefined;
}

/** What is in force: replicas with the same files have the same hash. */
export interface ConfigurationRow {
  /** From 1 at the start of the process, and one more for each change that was taken over. */
  readonly generation: number;
  readonly hash: string;
  /** ISO 8601. */
  readonly applied_at: string;
}

/** One route, in the order in which routes are tried. */
export interface RouteRow {
  readonly name: string;
  readonly prefix: string;
  /** What it asks of a request beside the prefix, and what part of the requests it gets: `POST`, `host api.*`, `20 %`. */
  readonly conditions: readonly string[];
  readonly rewrite: string;
  readonly service: string;
  readonly target: string;
  readonly authenticated: boolean;
  readonly labels: readonly string[];
  readonly timeout_ms: number | undefined;
  /** `file:line`; undefined for the server's own routes. */
  readonly source: string | undefined;
}

/** Whom a record names as a service, and where that leads. */
export interface ServiceRow {
  readonly role: string;
  readonly service: string;
  readonly target: string;
}

/** A part of the API that is on its way out; its times are in ISO 8601. */
export interface VersionRow {
  readonly name: string;
  readonly prefix: string;
  readonly deprecation: string | undefined;
  readonly sunset: string | undefined;
  readonly successor: string | undefined;
  readonly source: string;
}

export interface LimitRow {
  readonly domain: string;
  /** The descriptor's entries, outermost first: `key` or `key=value`. */
  readonly descriptor: string;
  /** `10 per minute` or `unlimited`. */
  readonly limit: string;
  readonly source: string;
}

export interface ErrorRow {
  readonly source: string;
  readonly record: string | undefined;
  readonly message: string;
  readonly remedy: string;
}

export interface DiagnosticsParts {
  readonly version: string;
  /** Milliseconds since the process began to serve. */
  readonly uptimeMs: () => number;
  readonly gateway: () => GatewaySnapshot;
  readonly limits: () => readonly LimitDomain[];
  readonly configuration: {
    readonly current: () => { readonly number: number; readonly hash: () => string; readonly appliedAtMs: number };
    /** Why the files as they are now are not what is in force. */
    readonly errors: () => readonly ConfigurationError[];
    readonly notices: () => readonly ConfigurationError[];
  };
}

export function readDiagnostics({ version, uptimeMs, gateway, limits, configuration }: DiagnosticsParts): Diagnostics {
  const { routes, services, versions, auth, ratelimit } = gateway();
  const { number: generation, hash, appliedAtMs } = configuration.current();
  return {
    version,
    uptime_seconds: Math.floor(uptimeMs() / 1000),
    configuration: { generation, hash: hash(), applied_at: new Date(appliedAtMs).toISOString() },
    routes: routes.map(routeRow),
    services: services.map(({ role, service, target }) => ({ role, service, target: target() })),
    versions: versions.map(versionRow),
    limits: limits().flatMap(({ domain, descriptors }) => limitRows(domain, descriptors, '')),
    errors: configuration.errors().map(errorRow),
    notices: configuration.notices().map(errorRow),
    auth,
    ratelimit,
  };
}

function routeRow({ target, labels, timeoutMs, source, ...route }: Route): RouteRow {
  return {
    name: route.name,
    prefix: route.prefix,
    conditions: route.conditions(),
    rewrite: route.mapping.rewrite,
    service: route.mapping.service,
    target: target(),
    authenticated: route.auth !== undefined,
    labels: labels.map((group) => group.labels.map(({ name }) => name).join(' + ')),
    timeout_ms: timeoutMs,
    source: source && place(source),
  };
}

function versionRow({ name, prefix, deprecatedAtMs, endsAtMs, successor, source }: Version): VersionRow {
  const timeOf = (ms: number | undefined) => (ms === undefined ? undefined : new Date(ms).toISOString());
  return {
    name,
    prefix,
    deprecation: timeOf(deprecatedAtMs),
    sunset: timeOf(endsAtMs),
    successor,
    source: place(source),
  };
}

function errorRow({ source, record, message, remedy }: ConfigurationError): ErrorRow {
  return { source: place(source), record, message, remedy };
}

function limitRows(domain: string, descriptors: readonly LimitDescriptor[], above: string): LimitRow[] {
  return descriptors.flatMap(({ key, value, limits, descriptors: below, source }) => {
    const descriptor = `${above}${key}${value === undefined ? '' : `=${value}`}`;
    const own = limits.map((limit) => ({ domain, descriptor, limit: limitText(limit), source: place(source) }));
    return [...own, ...limitRows(domain, below, `${descriptor} › `)];
  });
}

/** `10 per minute`, `5 per 30 seconds (token bucket)`. */
function limitText({ unit, unitMultiplier, requestsPerUnit, unlimited, algorithm, shadowMode }: Limit): string {
  if (unlimited) return 'unlimited';
  const window = unitMultiplier === 1 ? unit : `${unitMultiplier} ${unit}s`;
  const how = [algorithm === 'fixed_window' ? '' : algorithm.replace('_', ' '), shadowMode ? 'shadow' : ''];
  const said = how.filter(Boolean).join(', ');
  return `${requestsPerUnit} per ${window}${said && ` (${said})`}`;
}

function place({ file, line }: Source): string {
  return `${file}:${line}`;
}
