/** Ambassador's records become ours, from annotations and from resources; kinds and fields that are not supported give a notice each. */
import { type ConfigDocument, type ConfigurationError, errorsOf, type PlacedFault } from '../errors.ts';
import type { AmbassadorReader, Fields, FieldTable } from '../fields/field.ts';
import { authServiceFields } from '../records/auth-service.ts';
import { isAmbassadors } from '../records/kind.ts';
import { mappingFields } from '../records/mapping-fields.ts';
import { rateLimitServiceFields } from '../records/rate-limit-service.ts';
import { serviceHost } from '../records/rewrite.ts';
import { allowedHeaders, ignored, isMap, shorthand, silent, tls, withoutRedirect } from './readers.ts';

export interface Translated {
  readonly records: readonly ConfigDocument[];
  readonly notices: readonly ConfigurationError[];
  /** The first record that was translated. */
  readonly first: ConfigDocument | undefined;
}

/**
 * Records of ours stay as they are. Only with GATEWAY_DOMAIN=getambassador.io are Ambassador's files read as they are.
 */
export function translateRecords(documents: readonly ConfigDocument[], gatewayDomain: string): Translated {
  if (gatewayDomain !== 'getambassador.io') return { records: documents, notices: [], first: undefined };
  const parts = documents.map((document) => ({ document, ...translate(document) }));
  return {
    records: parts.flatMap(({ records }) => records),
    notices: parts.flatMap(({ notices }) => notices),
    first: parts.find(({ document, records: [record] }) => record !== undefined && record !== document)?.document,
  };
}

/** The one notice of a configuration with translated records. */
export function differencesFrom(document: ConfigDocument): readonly ConfigurationError[] {
  return noticesOf(document, [
    {
      path: [],
      message:
        'is read as Ambassador reads it, but for six things, among them: a prefix matches whole path segments, and a label whose header is missing is left out alone',
      remedy: 'config/README.md explains each. This notice is given once for all records.',
    },
  ]);
}

type Result = Omit<Translated, 'first'>;

function translate(document: ConfigDocument): Result {
  const { apiVersion, kind, ...record } = asMap(document.value) ?? {};
  if (typeof apiVersion !== 'string' || typeof kind !== 'string') return untouched(document);
  const known = Object.hasOwn(kinds, kind) ? kinds[kind] : undefined;
  if (!isAmbassadors(apiVersion)) {
    const mayBeOurs = known !== undefined || apiVersion.startsWith('gateway/');
    return mayBeOurs ? untouched(document) : skipped(document, kind, ofNoRoute);
  }
  return known === undefined ? unsupported(document, kind) : ofKind(document, record, kind, known);
}

function unsupported(document: ConfigDocument, kind: string): Result {
  const remedy = Object.hasOwn(otherKinds, kind) ? otherKinds[kind] : undefined;
  return remedy === undefined ? untouched(document) : skipped(document, kind, remedy);
}

function ofKind(document: ConfigDocument, record: Fields, kind: string, known: Kind): Result {
  const { fields, placeOf } = fieldsOf(record);
  const ids: readonly unknown[] = [fields['ambassador_id'] ?? 'default'].flat();
  if (!ids.includes('default'))
    return skipped(document, `${kind} of ambassador_id ${ids.join(', ')}`, ofAnotherGateway);
  return translated(document, withDefaults(fields, known), { kind, placeOf, known });
}

/** In Ambassador an empty value is the same as none. */
function withDefaults(fields: Fields, { defaultsFor }: Kind): Fields {
  const given = Object.entries(fields).filter(([, value]) => value !== null);
  return { ...defaultsFor(fields), ...Object.fromEntries(given) };
}

/** For Deployments and the like, which often share a file with records. */
const ofNoRoute = 'Nothing to do: it defines no route.';
const ofAnotherGateway = 'It is for another gateway; remove ambassador_id where it is for this one.';

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
  /** The path of a field of the record in the document. */
  readonly placeOf: (name: string) => readonly string[];
}

interface Origin extends Pick<Placed, 'placeOf'> {
  readonly kind: string;
  readonly known: Kind;
}

/** A resource has its fields under `spec` and its name under `metadata`; in an annotation all are side by side. */
function fieldsOf(record: Fields): Placed {
  const { apiVersion, kind, generation, metadata, spec, status, ...flat } = record;
  const { name, namespace } = asMap(metadata) ?? {};
  if (spec === undefined && name === undefined) return { fields: flat, placeOf: (field) => [field] };
  const isElsewhere = typeof name === 'string' && typeof namespace === 'string' && namespace !== 'default';
  return {
    fields: { name: isElsewhere ? `${name}.${namespace}` : name, ...asMap(spec) },
    placeOf: (field) => (field === 'name' ? ['metadata', 'name'] : ['spec', field]),
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

/** The path in the document for a path in the translated record. */
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
  return errorsOf(document, notices, nameOf(document.value));
}

/** `Mapping hotel`, as errors name it. */
function nameOf(value: unknown): string | undefined {
  const record = asMap(value);
  if (record === undefined) return undefined;
  return [record['kind'], fieldsOf(record).fields['name']].filter((part) => typeof part === 'string').join(' ');
}

function asMap(value: unknown): Fields | undefined {
  return isMap(value) ? value : undefined;
}

/** Leaves an unknown release as it is, to be refused: its fields may have another meaning. */
function ourVersion(version: unknown): unknown {
  return typeof version === 'string' && apiVersions.test(version) ? 'gateway/v1' : version;
}

const apiVersions = /^(?:ambassador\/v[0-2]|(?:x\.)?getambassador\.io\/v(?:[0-2]|3alpha1))$/;

interface Kind {
  /** Ambassador's fields of the same names. */
  readonly rows: FieldTable;
  /** Ambassador's fields that we do not have. */
  readonly others: Readonly<Record<string, AmbassadorReader>>;
  /** Ambassador's defaults that differ from ours, for a record with these fields. */
  readonly defaultsFor: (fields: Fields) => Fields;
}

const everywhere = {
  add_linkerd_headers: ignored('headers of Linkerd are not added'),
  // Records for another instance are left out as a whole.
  ambassador_id: silent,
  stats_name: ignored('metrics have fixed names here'),
  tls,
} as const;

export const kinds: Readonly<Record<string, Kind>> = {
  Mapping: {
    rows: mappingFields,
    defaultsFor: ({ host_redirect: redirects }) => (redirects === true ? {} : { timeout_ms: 3000 }),
    others: {
      ...everywhere,
      auth_context_extensions: ignored('it is for auth services that speak gRPC'),
      auto_host_rewrite: withoutRedirect(shorthand('host_rewrite', serviceHost)),
      bypass_error_response_overrides: silent,
      circuit_breaker: ignored('it names a record of Ambassador 0.x', 'Write circuit_breakers.'),
      cluster_idle_timeout_ms: (value) => ({ fields: { idle_connection_ms: value } }),
      cluster_max_connection_lifetime_ms: ignored('connections to services have no maximum lifetime'),
      cluster_tag: ignored('metrics have fixed names here'),
      dns_type: ignored('names are looked up as the system does it'),
      docs: ignored('there is no developer portal'),
      enable_ipv4: silent,
      enable_ipv6: silent,
      envoy_override: ignored('there is no Envoy here'),
      error_response_overrides: ignored('errors have one form here', "README's table of problems shows it."),
      grpc: ignored('services are called over HTTP/1.1', 'Give the service a port for HTTP/1.1.'),
      keepalive: ignored('TCP keep-alive is left to the system'),
      modules: ignored('a Mapping has all such settings'),
      priority: ignored('the requests of all mappings have one priority'),
      rate_limits: ignored('it is of Ambassador 0.x', 'Write labels.'),
      resolver: ignored(
        'services are found by SERVICE_ADDRESSES and by name',
        'List its addresses in SERVICE_ADDRESSES.',
      ),
      respect_dns_ttl: silent,
      use_websocket: shorthand('allow_upgrade', ['websocket']),
    },
  },
  AuthService: {
    rows: authServiceFields,
    defaultsFor: () => ({}),
    others: {
      ...everywhere,
      allowed_headers: allowedHeaders,
      allow_request_body: shorthand('include_body', { max_bytes: 4096, allow_partial: true }),
      circuit_breakers: ignored('an auth service has none'),
      protocol_version: silent,
    },
  },
  RateLimitService: {
    rows: rateLimitServiceFields,
    defaultsFor: () => ({ domain: 'ambassador' }),
    others: {
      ...everywhere,
      grpc: ignored('a denied gRPC request is answered like any other'),
      protocol_version: silent,
      tls: ignored('the rate-limit service is called in clear text', 'Put both on one machine or one network.'),
    },
  },
};

const resolver = 'Services are found by SERVICE_ADDRESSES and by name.';
const listener = 'Set HOST and PORT, TLS_CERT and TLS_KEY.';
const guard = 'It guards nothing here: write an AuthService.';
const log = 'The log goes to the standard output.';

/** Ambassador's other kinds, and what to use here instead. */
const otherKinds: Readonly<Record<string, string>> = {
  BufferService: 'Write max_request_bytes in each Mapping, or set BODY_BYTES_MAX.',
  CircuitBreaker: 'Write circuit_breakers in each Mapping.',
  ConsulResolver: resolver,
  DevPortal: 'There is no developer portal.',
  Filter: guard,
  FilterPolicy: guard,
  Host: `${listener} Write hostname in each Mapping that is for one host.`,
  KubernetesEndpointResolver: resolver,
  KubernetesServiceResolver: resolver,
  Listener: listener,
  LogService: log,
  Module:
    'Most of it are settings here, which config/README.md lists; what is said of all mappings belongs in each Mapping.',
  OutlierDetection: 'Write outlier_detection in each Mapping.',
  RateLimit: 'Limits are in ratelimit/, in the format of envoyproxy/ratelimit.',
  TCPMapping: 'Only HTTP is routed.',
  TLSContext: listener,
  TracingService: log,
};
