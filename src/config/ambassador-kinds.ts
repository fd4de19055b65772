/** The kinds and releases of Ambassador's records: which are read here, and what does here what the others do there. */
import {
  authServiceReaders,
  type FieldReaders,
  type Fields,
  mappingReaders,
  rateLimitServiceReaders,
} from './ambassador-fields.ts';

interface Kind {
  readonly readers: FieldReaders;
  /** What a record says there that says nothing. */
  readonly defaults: Fields;
}

/** Undefined for a kind that is not read here. */
export function kindOf(kind: string): Kind | undefined {
  return Object.hasOwn(kinds, kind) ? kinds[kind] : undefined;
}

/** Undefined for a kind that Ambassador does not have. */
export function remedyForKind(kind: string): string | undefined {
  return Object.hasOwn(otherKinds, kind) ? otherKinds[kind] : undefined;
}

/** A release that is not known may mean another thing by the same name: it stays, to be refused. */
export function nativeVersion(version: unknown): unknown {
  return typeof version === 'string' && apiVersions.test(version) ? 'gateway/v1' : version;
}

const apiVersions = /^(?:ambassador\/v[0-2]|(?:x\.)?getambassador\.io\/v(?:[0-2]|3alpha1))$/;

const kinds: Readonly<Record<string, Kind>> = {
  Mapping: { readers: mappingReaders, defaults: {} },
  AuthService: { readers: authServiceReaders, defaults: {} },
  RateLimitService: { readers: rateLimitServiceReaders, defaults: { domain: 'ambassador' } },
};

const resolver = 'Services are found by SERVICE_ADDRESSES and by name.';
const listener = 'Set HOST and PORT, TLS_CERT and TLS_KEY.';
const guard = 'It guards nothing here: write an AuthService.';
const log = 'The log goes to the standard output.';

/** What does here what they do there. */
const otherKinds: Readonly<Record<string, string>> = {
  ConsulResolver: resolver,
  DevPortal: 'There is no developer portal.',
  Filter: guard,
  FilterPolicy: guard,
  Host: `${listener} Write hostname in each Mapping that is for one host.`,
  KubernetesEndpointResolver: resolver,
  KubernetesServiceResolver: resolver,
  Listener: listener,
  LogService: log,
  Module: 'Most of it are settings here, and README lists them; what is said of all mappings stands in each Mapping.',
  RateLimit: 'Limits stand in ratelimit/, in the format of envoyproxy/ratelimit.',
  TCPMapping: 'Only HTTP is routed.',
  TLSContext: listener,
  TracingService: log,
};
