/** Translates Ambassador's records to ours, with a notice for each kind and field that is not supported. */
import { type ConfigDocument, type ConfigurationError, errorsOf, type PlacedFault } from '../errors.ts';
import type { AmbassadorReader, Fields, FieldTable } from '../fields/field.ts';
import { quote } from '../quote.ts';
import { authServiceFields } from '../records/auth-service.ts';
import { isAmbassadorVersion } from '../records/kind.ts';
import { mappingFields } from '../records/mapping-fields.ts';
import { rateLimitServiceFields } from '../records/rate-limit-service.ts';
import { serviceHost } from '../records/rewrite.ts';
import {
  allowedHeaders,
  conditions,
  healthChecks,
  ignored,
  ignoredSilently,
  isMap,
  shorthand,
  tls,
  withoutRedirect,
} from './readers.ts';

export interface Translated {
  readonly records: readonly ConfigDocument[];
  readonly notices: readonly ConfigurationError[];
  /** About policies that are not read, and that would have protected requests. */
  readonly policies: readonly ConfigurationError[];
  /** The first record that was translated, if there is one. */
  readonly first: ConfigDocument | undefined;
}

/** Translates Ambassador's records if GATEWAY_DOMAIN is getambassador.io. Returns all other records unchanged. */
export function translateRecords(documents: readonly ConfigDocument[], gatewayDomain: string): Translated {
  if (gatewayDomain !== 'getambassador.io') return { records: documents, notices: [], policies: [], first: undefined };
  const parts = documents.map((document) => ({ document, ...translate(document) }));
  return {
    records: parts.flatMap(({ records }) => records),
    notices: parts.flatMap(({ notices }) => notices),
    policies: parts.flatMap(({ policies = [] }) => policies),
    first: parts.find(({ document, records: [record] }) => record !== undefined && record !== document)?.document,
  };
}

/** Returns the general notice about a configuration with translated records. */
export function differencesNotice(document: ConfigDocument): readonly ConfigurationError[] {
  return noticesOf(document, [
    {
      path: [],
      message:
        'is read as in Ambassador, with seven differences: for example, a prefix matches whole path segments, and a missing header omits only its own label',
      remedy: 'config/README.md explains each difference. This notice appears once for all records.',
    },
  ]);
}

type Result = Pick<Translated, 'records' | 'notices'> & Partial<Pick<Translated, 'policies'>>;

function translate(document: ConfigDocument): Result {
  const { apiVersion, kind } = asMap(document.value) ?? {};
  if (typeof apiVersion !== 'string' || typeof kind !== 'string') return untouched(document);
  const known = Object.hasOwn(kinds, kind) ? kinds[kind] : undefined;
  if (!isAmbassadorVersion(apiVersion)) {
    const mayBeOurs = known !== undefined || apiVersion.startsWith('gateway/');
    return mayBeOurs ? untouched(document) : skipped(document, kind, notOfAmbassador);
  }
  return known === undefined ? translateUnsupported(document, kind) : translateKind(document, kind, known);
}

function translateUnsupported(document: ConfigDocument, kind: string): Result {
  const remedy = Object.hasOwn(otherKinds, kind) ? otherKinds[kind] : undefined;
  const config = Object.keys(asMap(fieldsOf(document).fields['config']) ?? {}).map(quote);
  const what = config.length === 0 ? kind : `${kind} with ${config.join(', ')}`;
  if (remedy === undefined) return untouched(document);
  const { records, notices } = skipped(document, what, remedy);
  return kind === 'FilterPolicy' ? { records, notices: [], policies: notices } : { records, notices };
}

function translateKind(document: ConfigDocument, kind: string, known: Kind): Result {
  const { fields, placeOf } = fieldsOf(document);
  const ids: readonly unknown[] = [fields['ambassador_id'] ?? 'default'].flat();
  if (!ids.includes('default'))
    return skipped(document, `${kind} with ambassador_id ${ids.join(', ')}`, forAnotherGateway);
  return translated(document, withDefaults(fields, known), { kind, placeOf, known });
}

/** Adds Ambassador's defaults, and treats empty values as missing like Ambassador. */
function withDefaults(fields: Fields, { defaultsFor }: Kind): Fields {
  const given = Object.entries(fields).filter(([, value]) => value !== null);
  return { ...defaultsFor(fields), ...Object.fromEntries(given) };
}

/** The remedy for Deployments and other resources, which often share a file with records. */
const notOfAmbassador = 'Nothing to do, unless it defines routes, as an Ingress does: write a Mapping for each route.';
const forAnotherGateway = 'It is for another gateway. Remove ambassador_id if it is for this one.';

function untouched(document: ConfigDocument): Result {
  return { records: [document], notices: [] };
}

function skipped(document: ConfigDocument, what: string, remedy: string): Result {
  return {
    records: [],
    notices: noticesOf(document, [{ path: ['kind'], message: `this ${what} is not read`, remedy }]),
  };
}

interface Placed {
  readonly fields: Fields;
  /** Returns the path in the document of a field of the record. */
  readonly placeOf: (name: string) => readonly string[];
}

interface Origin extends Pick<Placed, 'placeOf'> {
  readonly kind: string;
  readonly known: Kind;
}

/**
 * Returns the fields of a record. A resource has them under `spec` and `metadata`, an annotation at the top level. The
 * name includes the namespace, and `namespace` is left out if it is the default one.
 */
function fieldsOf(document: ConfigDocument): Placed {
  const { apiVersion, kind, generation, metadata, spec, status, ...flat } = asMap(document.value) ?? {};
  const head = asMap(metadata) ?? {};
  const isFlat = spec === undefined && head['name'] === undefined;
  const { name, namespace = document.namespace } = isFlat ? flat : head;
  const isElsewhere = typeof name === 'string' && typeof namespace === 'string' && namespace !== 'default';
  return {
    fields: {
      ...(isFlat ? flat : asMap(spec)),
      ...(isElsewhere ? { name: `${name}.${namespace}`, namespace } : { name, namespace: null }),
    },
    placeOf: (field) => (isFlat ? [field] : field === 'name' ? ['metadata', 'name'] : ['spec', field]),
  };
}

function translated(document: ConfigDocument, given: Fields, { kind, known, placeOf }: Origin): Result {
  const fields: Record<string, unknown> = { apiVersion: ourVersion(asMap(document.value)?.['apiVersion']), kind };
  const origins = new Map<PropertyKey, string>();
  const notices: PlacedFault[] = [];
  for (const [name, value] of Object.entries(given)) {
    const { fields: ours, notice } = readerOf(name, given, known)(value, given);
    Object.assign(fields, ours);
    for (const field of Object.keys(ours)) origins.set(field, name);
    if (notice === undefined) continue;
    notices.push({ path: placeOf(name), message: `${name} ${notice.message}`, remedy: notice.remedy });
  }
  const lineAt = (path: readonly PropertyKey[]) => document.lineAt(placed(path, origins, placeOf));
  return { records: [{ ...document, value: fields, lineAt }], notices: noticesOf(document, notices) };
}

function readerOf(name: string, all: Fields, { rows, others }: Kind): AmbassadorReader {
  const row = Object.values(rows).find((one) => one.name === name);
  if (row?.allowedWithRedirect === false && all['host_redirect'] === true) return unusedByRedirect;
  const reader = row?.ambassador ?? (Object.hasOwn(others, name) ? others[name] : undefined);
  return reader ?? ((value) => ({ fields: { [name]: value } }));
}

const unusedByRedirect: AmbassadorReader = () => ({
  fields: {},
  notice: { message: 'has no effect on a redirect', remedy: 'Remove it.' },
});

/** Converts a path in the translated record to a path in the document. */
function placed(
  [first, ...rest]: readonly PropertyKey[],
  origins: ReadonlyMap<PropertyKey, string>,
  placeOf: (name: string) => readonly string[],
): readonly PropertyKey[] {
  if (first === undefined) return [];
  const isHead = first === 'kind' || first === 'apiVersion';
  return [...(isHead ? [first] : placeOf(origins.get(first) ?? String(first))), ...rest];
}

function noticesOf(document: ConfigDocument, notices: readonly PlacedFault[]): readonly ConfigurationError[] {
  return errorsOf(document, notices, displayName(document));
}

/** Returns the name that notices show, such as `Mapping hotel`. */
function displayName(document: ConfigDocument): string {
  const { kind } = asMap(document.value) ?? {};
  return [kind, fieldsOf(document).fields['name']].filter((part) => typeof part === 'string').join(' ');
}

function asMap(value: unknown): Fields | undefined {
  return isMap(value) ? value : undefined;
}

/** Converts known versions to ours. Keeps unknown ones, which are then rejected because their fields may differ. */
function ourVersion(version: unknown): unknown {
  return typeof version === 'string' && apiVersions.test(version) ? 'gateway/v1' : version;
}

const apiVersions = /^(?:ambassador\/v[0-2]|(?:x\.)?getambassador\.io\/v(?:[0-2]|3alpha1))$/;

interface Kind {
  /** Our fields, most of which have the same names in Ambassador. */
  readonly rows: FieldTable;
  /** The fields that only Ambassador has. */
  readonly others: Readonly<Record<string, AmbassadorReader>>;
  /** Returns Ambassador's defaults that differ from ours, for a record with these fields. */
  readonly defaultsFor: (fields: Fields) => Fields;
}

const commonFields = {
  add_linkerd_headers: ignored('headers of Linkerd are not added'),
  // Records for other instances have already been skipped.
  ambassador_id: ignoredSilently,
  // It is part of the name, and of a Mapping's service.
  namespace: ignoredSilently,
  stats_name: ignored('metrics have fixed names here'),
  tls,
  // The Kubernetes API writes the fields v2… and v3… when it converts a record from another version.
  v2ExplicitTLS: ignoredSilently,
  v3StatsName: ignored('metrics have fixed names here'),
} as const;

export const kinds: Readonly<Record<string, Kind>> = {
  Mapping: {
    rows: mappingFields,
    defaultsFor: ({ host_redirect: redirects, prefix_regex: isRegex, regex_rewrite: regex }) =>
      redirects === true ? {} : { timeout_ms: 3000, ...(isRegex === true && !regex && { rewrite: '/' }) },
    others: {
      ...commonFields,
      auth_context_extensions: ignored('it is for auth services that speak gRPC'),
      auto_host_rewrite: withoutRedirect(shorthand('host_rewrite', serviceHost)),
      bypass_error_response_overrides: ignoredSilently,
      circuit_breaker: ignored('it refers to a record of Ambassador 0.x', 'Write circuit_breakers.'),
      cluster_idle_timeout_ms: (value) => ({ fields: { idle_connection_ms: value } }),
      cluster_max_connection_lifetime_ms: (value) => ({ fields: { connection_lifetime_ms: value } }),
      cluster_tag: ignored('metrics have fixed names here'),
      dns_type: ignored('names are resolved by the system'),
      docs: ignored('there is no developer portal'),
      enable_ipv4: ignoredSilently,
      enable_ipv6: ignoredSilently,
      envoy_override: ignored('there is no Envoy here'),
      error_response_overrides: ignored('errors have a fixed format here', 'See the table of problems in README.'),
      grpc: ignored('services are called over HTTP/1.1', 'Give the service a port for HTTP/1.1.'),
      keepalive: ignored('TCP keep-alive is left to the system'),
      modules: ignored('its settings are fields of the Mapping here'),
      priority: ignored('all requests have the same priority'),
      rate_limits: ignored('it is a field of Ambassador 0.x', 'Write labels.'),
      resolver: ignored(
        'services are resolved by SERVICE_ADDRESSES and by name',
        'List its addresses in SERVICE_ADDRESSES.',
      ),
      respect_dns_ttl: ignoredSilently,
      use_websocket: shorthand('allow_upgrade', ['websocket']),
      v2BoolHeaders: conditions('headers', 'v2BoolHeaders'),
      v2BoolQueryParameters: conditions('query_parameters', 'v2BoolQueryParameters'),
      v3health_checks: healthChecks,
    },
  },
  AuthService: {
    rows: authServiceFields,
    defaultsFor: () => ({}),
    others: {
      ...commonFields,
      allowed_headers: allowedHeaders,
      allow_request_body: shorthand('include_body', { max_bytes: 4096, allow_partial: true }),
      circuit_breakers: ignored('auth services have no circuit breakers'),
      protocol_version: ignoredSilently,
      v3CircuitBreakers: ignored('auth services have no circuit breakers'),
    },
  },
  RateLimitService: {
    rows: rateLimitServiceFields,
    defaultsFor: () => ({ domain: 'ambassador' }),
    others: {
      ...commonFields,
      grpc: ignored('denied gRPC requests get the same response as others'),
      protocol_version: ignoredSilently,
      tls: ignored('the rate-limit service is called without encryption', 'Run both on the same machine or network.'),
      v3GRPC: ignored('denied gRPC requests get the same response as others'),
    },
  },
};

const resolver = 'Services are resolved by SERVICE_ADDRESSES and by name.';
const listener = 'Set HOST and PORT, TLS_CERT and TLS_KEY.';
const guard = 'Remove it, and write an AuthService: it protects all mappings that do not bypass it.';
const log = 'Logs are written to standard output.';

/** Ambassador's other kinds, with their replacements here. */
const otherKinds: Readonly<Record<string, string>> = {
  BufferService: 'Write max_request_bytes in each Mapping, or set BODY_BYTES_MAX.',
  CircuitBreaker: 'Write circuit_breakers in each Mapping.',
  ConsulResolver: resolver,
  DevPortal: 'There is no developer portal.',
  Filter: guard,
  FilterPolicy: guard,
  Host: `${listener} Write hostname in each Mapping that applies to one host.`,
  KubernetesEndpointResolver: resolver,
  KubernetesServiceResolver: resolver,
  Listener: listener,
  LogService: log,
  Module:
    'Most of its options are settings here, which config/README.md lists, or fields of each Mapping. For authentication, write an AuthService.',
  OutlierDetection: 'Write outlier_detection in each Mapping.',
  RateLimit: 'Limits are in ratelimit/, in the format of envoyproxy/ratelimit.',
  TCPMapping: 'Only HTTP is supported.',
  TLSContext: listener,
  TracingService: log,
};
