/**
 * Translates Ambassador's records to ours, with a notice for each kind and field that is not supported, and an error if
 * it protects requests.
 */

import { type Fields, isMap } from '#foundation';
import { type ConfigDocument, type ConfigurationError, errorsOf, type PlacedFault, suggestion } from '../errors.ts';
import type { AmbassadorReader, FieldTable } from '../fields/field.ts';
import { quote } from '../quote.ts';
import { authServiceFields } from '../records/auth-service.ts';
import { isAmbassadorVersion } from '../records/kind.ts';
import { mappingFields } from '../records/mapping-fields.ts';
import { rateLimitServiceFields } from '../records/rate-limit-service.ts';
import { serviceHost } from '../records/rewrite.ts';
import { type AddressRecord, addressOptions, addressRecord } from './addresses.ts';
import { isGuardingIngress, moduleName, type OtherKind, otherKinds } from './other-kinds.ts';
import {
  allowedHeaders,
  conditions,
  healthChecks,
  ignored,
  ignoredSilently,
  limitedStatus,
  refused,
  shorthand,
  tls,
  withoutRedirect,
} from './readers.ts';

export interface Translated {
  readonly records: readonly ConfigDocument[];
  readonly notices: readonly ConfigurationError[];
  /** About kinds that are not read although they protect requests. */
  readonly errors: readonly ConfigurationError[];
  /** The lists of addresses of Modules. */
  readonly addresses: readonly AddressRecord[];
  /** The first record that was translated, if there is one. */
  readonly first: ConfigDocument | undefined;
}

/** Its API group, and the GATEWAY_DOMAIN with which its records are read. */
export const ambassadorDomain = 'getambassador.io';

/** Translates Ambassador's records if GATEWAY_DOMAIN is getambassador.io. Returns all other records unchanged. */
export function translateRecords(documents: readonly ConfigDocument[], gatewayDomain: string): Translated {
  if (gatewayDomain !== ambassadorDomain) return withoutAmbassador(documents, gatewayDomain);
  const parts = documents.map((document) => ({ document, ...translate(document) }));
  return {
    records: parts.flatMap(({ records }) => records),
    notices: parts.flatMap(({ notices }) => notices),
    errors: parts.flatMap(({ errors = [] }) => errors),
    addresses: parts.flatMap(({ addresses = [] }) => addresses),
    first: parts.find(({ document, records: [record] }) => record !== undefined && record !== document)?.document,
  };
}

/** Rejects Ambassador's records as a whole: their fields have other places and meanings. */
function withoutAmbassador(documents: readonly ConfigDocument[], gatewayDomain: string): Translated {
  const isForeign = ({ value }: ConfigDocument) => {
    const { apiVersion } = asMap(value) ?? {};
    return typeof apiVersion === 'string' && isAmbassadorVersion(apiVersion);
  };
  const fault: PlacedFault = {
    path: ['apiVersion'],
    message: `is a record of Ambassador, which is not read because GATEWAY_DOMAIN is ${gatewayDomain}`,
    remedy: `Set GATEWAY_DOMAIN=${ambassadorDomain}, or rewrite it for apiVersion: gateway/v1.`,
  };
  const errors = documents.filter(isForeign).flatMap((document) => errorsOf(document, [fault], displayName(document)));
  return { records: documents.filter((one) => !isForeign(one)), notices: [], errors, addresses: [], first: undefined };
}

/** Returns the general notice about a configuration with translated records. */
export function differencesNotice(document: ConfigDocument): readonly ConfigurationError[] {
  return noticesOf(document, [
    {
      path: [],
      message:
        'is read as in Ambassador, with some differences: for example, a prefix matches whole path segments, and a missing header omits only its own label',
      remedy: 'config/README.md explains each difference. This notice appears once for all records.',
    },
  ]);
}

type Result = Pick<Translated, 'records' | 'notices'> & Partial<Pick<Translated, 'errors' | 'addresses'>>;

function translate(document: ConfigDocument): Result {
  const { apiVersion, kind } = asMap(document.value) ?? {};
  if (typeof apiVersion !== 'string' || typeof kind !== 'string') return untouched(document);
  if (!isAmbassadorVersion(apiVersion)) return notTranslated(document, apiVersion, kind);
  const placed = fieldsOf(document);
  const ids = idsOf(placed.fields);
  return ids.includes('default')
    ? translateKind(document, kind, placed)
    : skipped(document, `${kind} with ambassador_id ${ids.join(', ')}`, forAnotherGateway);
}

/** Keeps our own records, and skips resources of Kubernetes itself, whose annotations have been read already. */
function notTranslated(document: ConfigDocument, apiVersion: string, kind: string): Result {
  const [group = ''] = apiVersion.split('/');
  if (suggestion(group, ['gateway']) !== undefined) return untouched(document);
  const meant = suggestion(group, [ambassadorDomain, 'ambassador']);
  if (meant !== undefined) {
    const message = `apiVersion ${quote(apiVersion)} is not supported, did you mean ${quote(`${meant}/v2`)}?`;
    const faults = [{ path: ['apiVersion'], message, remedy: `Correct it, such as apiVersion: ${meant}/v2.` }];
    return { ...nothing, errors: errorsOf(document, faults, displayName(document)) };
  }
  return Object.hasOwn(kinds, kind) ? untouched(document) : withoutRoutes(document, kind);
}

function withoutRoutes(document: ConfigDocument, kind: string): Result {
  if (!isGuardingIngress(document.value)) return skipped(document, kind, notOfAmbassador);
  const message = 'its routes protect requests, and are not read';
  const faults = [{ path: ['kind'], message, remedy: 'Write a Mapping for each route, then remove it.' }];
  return { ...nothing, errors: errorsOf(document, faults, displayName(document)) };
}

/** Ambassador 0.x also reads an AuthService from the Module with the name authentication. */
function translateKind(document: ConfigDocument, kind: string, placed: Placed): Result {
  if (kind === 'Module' && moduleName(placed.fields['name']) === 'authentication')
    return translateRecord(document, fieldsOfConfig(placed), { kind: 'AuthService', known: authService });
  const known = Object.hasOwn(kinds, kind) ? kinds[kind] : undefined;
  if (known !== undefined) return translateRecord(document, placed, { kind, known });
  const other = Object.hasOwn(otherKinds, kind) ? otherKinds[kind] : undefined;
  return other === undefined ? untouched(document) : translateOther(document, placed, { kind, other });
}

/** The Kubernetes API marks each id with this text when it converts a resource from v3alpha1 to v2. */
const idMark = '--apiVersion-v3alpha1-only--';

/** Ambassador also accepts the name that a Host has after its status was written. */
function idsOf(fields: Fields): readonly string[] {
  const ids: readonly unknown[] = [fields['ambassadorId'] ?? fields['ambassador_id'] ?? 'default'].flat();
  return ids.map((id) => String(id).replace(idMark, ''));
}

/** Returns an error for each part that protects requests, and a notice about the rest. */
function translateOther(
  document: ConfigDocument,
  { fields, placeOf }: Placed,
  { kind, other: { remedy, faultsOf } }: { readonly kind: string; readonly other: OtherKind },
): Result {
  const faults = faultsOf(fields, []).map(({ path, ...fault }): PlacedFault => {
    const [field, ...inner] = path.map(String);
    return { ...fault, path: field === undefined ? ['kind'] : [...placeOf(field), ...inner] };
  });
  const errors = errorsOf(document, faults, displayName(document));
  const addresses = kind === 'Module' ? addressesOf(document, fields) : [];
  const reported = new Set([...faults.map(({ path }) => path.at(-1)), ...(addresses.length > 0 ? addressOptions : [])]);
  const config = Object.keys(asMap(fields['config']) ?? {}).filter((name) => !reported.has(name));
  const what = config.length === 0 ? kind : `${kind} with ${config.map(quote).join(', ')}`;
  const isReported = config.length === 0 && reported.size > 0;
  return { ...(isReported ? nothing : skipped(document, what, remedy)), errors, addresses };
}

function addressesOf(document: ConfigDocument, { config }: Fields): readonly AddressRecord[] {
  const found = addressRecord(config, { file: document.file, line: document.lineAt([]) });
  return found === undefined ? [] : [found];
}

const nothing: Result = { records: [], notices: [] };

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

/**
 * Returns the fields of a record. A resource has them under `spec` and `metadata`, an annotation may have them at the top
 * level too. The name includes the namespace, and `namespace` is left out if it is the default one.
 */
function fieldsOf(document: ConfigDocument): Placed {
  const { apiVersion, kind, generation, metadata, spec, status, ...flat } = asMap(document.value) ?? {};
  const head = asMap(metadata) ?? {};
  const name = head['name'] ?? flat['name'];
  const namespace = head['namespace'] ?? flat['namespace'] ?? document.namespace;
  const isElsewhere = typeof name === 'string' && typeof namespace === 'string' && namespace !== 'default';
  return {
    fields: {
      ...flat,
      // Anything but a map is an unknown field.
      ...(asMap(spec) ?? (spec === undefined || spec === null ? {} : { spec })),
      ...(isElsewhere ? { name: `${name}.${namespace}`, namespace } : { name, namespace: null }),
    },
    placeOf(field) {
      if (field === 'name' && flat['name'] === undefined && metadata !== undefined) return ['metadata', 'name'];
      const isInSpec = asMap(spec)?.[field] !== undefined || (spec !== undefined && flat[field] === undefined);
      return isInSpec ? ['spec', field] : [field];
    },
  };
}

/** Returns the fields of a Module with those in its `config`. */
function fieldsOfConfig({ fields: { config, ...head }, placeOf }: Placed): Placed {
  const inner = asMap(config) ?? {};
  return {
    fields: { ...inner, ...head },
    placeOf: (field) => (Object.hasOwn(inner, field) ? [...placeOf('config'), field] : placeOf(field)),
  };
}

function translateRecord(
  document: ConfigDocument,
  { fields: written, placeOf }: Placed,
  { kind, known }: { readonly kind: string; readonly known: Kind },
): Result {
  const given = withDefaults(written, known);
  const fields: Record<string, unknown> = { apiVersion: ourVersion(asMap(document.value)?.['apiVersion']), kind };
  const origins = new Map<PropertyKey, string>();
  const notices: PlacedFault[] = [];
  const faults: PlacedFault[] = [];
  for (const [name, value] of Object.entries(given)) {
    const { fields: ours, notice, fault } = readerOf(name, given, known)(value, given);
    Object.assign(fields, ours);
    for (const field of Object.keys(ours)) origins.set(field, name);
    if (notice !== undefined)
      notices.push({ path: placeOf(name), message: `${name} ${notice.message}`, remedy: notice.remedy });
    if (fault === undefined) continue;
    const { instead = name, message, remedy } = fault;
    origins.set(instead, name);
    faults.push({ path: [instead], message: `${name} ${message}`, remedy });
  }
  const lineAt = (path: readonly PropertyKey[]) => document.lineAt(placed(path, origins, placeOf));
  return { records: [{ ...document, value: fields, lineAt, faults }], notices: noticesOf(document, notices) };
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

/** Returns the name that notices show, such as `Mapping orders`. */
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
  ambassadorId: ignoredSilently,
  // The labels by which a Host selects Mappings, in an annotation.
  metadata_labels: ignoredSilently,
  // It is part of the name, and of a Mapping's service.
  namespace: ignoredSilently,
  stats_name: ignored('metrics have fixed names here'),
  tls,
  // The Kubernetes API writes the fields v2… and v3… when it converts a record from another version.
  v2ExplicitTLS: ignoredSilently,
  v3StatsName: ignored('metrics have fixed names here'),
} as const;

const authService: Kind = {
  rows: authServiceFields,
  defaultsFor: ({ proto }): Fields => (proto === 'grpc' ? {} : { allow_status: 200 }),
  others: {
    ...commonFields,
    allowed_headers: allowedHeaders,
    allow_request_body: shorthand('include_body', { max_bytes: 4096, allow_partial: true }),
    circuit_breakers: ignored('auth services have no circuit breakers'),
    v3CircuitBreakers: ignored('auth services have no circuit breakers'),
  },
};

export const kinds: Readonly<Record<string, Kind>> = {
  Mapping: {
    rows: mappingFields,
    defaultsFor: ({ host_redirect: redirects, prefix_regex: isRegex, regex_rewrite: regex, grpc }) =>
      redirects === true
        ? {}
        : {
            timeout_ms: 3000,
            cookie_path: 'keep',
            ...((isRegex === true || grpc === true) && !regex && { rewrite: '/' }),
          },
    others: {
      ...commonFields,
      auto_host_rewrite: withoutRedirect(shorthand('host_rewrite', serviceHost)),
      bypass_error_response_overrides: ignoredSilently,
      circuit_breaker: withoutRedirect(refused('circuit_breakers', 'it refers to a record of Ambassador 0.x')),
      cluster_idle_timeout_ms: (value) => ({ fields: { idle_connection_ms: value } }),
      cluster_max_connection_lifetime_ms: (value) => ({ fields: { connection_lifetime_ms: value } }),
      cluster_tag: ignored('metrics have fixed names here'),
      dns_type: ignored('names are resolved by the system'),
      docs: ignored('there is no developer portal'),
      enable_ipv4: ignoredSilently,
      enable_ipv6: ignoredSilently,
      envoy_override: refused(undefined, 'it may protect requests, and there is no Envoy here'),
      error_response_overrides: ignored('errors have a fixed format here', 'See the table of problems in README.'),
      keepalive: ignored('TCP keep-alive is left to the system'),
      modules: refused(undefined, 'it may protect requests'),
      // Its circuit breakers have been chosen.
      priority: ignoredSilently,
      rate_limits: withoutRedirect(refused('labels', 'it is a field of Ambassador 0.x')),
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
  AuthService: authService,
  RateLimitService: {
    rows: rateLimitServiceFields,
    defaultsFor: () => ({ domain: 'ambassador' }),
    others: {
      ...commonFields,
      grpc: limitedStatus,
      protocol_version: ignoredSilently,
      tls: ignored('the rate-limit service is called without encryption', 'Run both on the same machine or network.'),
      v3GRPC: limitedStatus,
    },
  },
};
