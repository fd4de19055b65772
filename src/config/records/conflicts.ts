/** Rules between records: unique names, one default, known auth services, identity headers, weights and shadows. */
import { type ConfigurationError, didYouMean, type Fault } from '../errors.ts';
import { quote } from '../quote.ts';
import { type AuthService, authServiceOf } from './auth-service.ts';
import type { Mapping } from './mapping.ts';
import { groupKeys, mappingFields } from './mapping-fields.ts';
import { groupOf, isPathAlone } from './match.ts';
import { type GatewayRecord, type RecordLists, recordLists } from './record.ts';
import type { JwtProvider } from './tokens/jwt-provider.ts';

export interface Kept<T> {
  readonly kept: readonly T[];
  readonly errors: readonly ConfigurationError[];
}

/**
 * Returns the errors between records. A later record that repeats the name or the role of an earlier one gets an error,
 * and is not compared with the others.
 */
export function findConflicts(records: readonly GatewayRecord[]): readonly ConfigurationError[] {
  const named = keepFirst(records, (record) => (mayShareName(record) ? undefined : fullName(record)), sameName);
  const single = keepFirst(named.kept, exclusiveKey, exclusionError);
  const { mappings, authServices, jwtProviders } = recordLists(single.kept);
  const identity = identityHeadersOf({ authServices, jwtProviders });
  const authenticated = keepAuthenticated(mappings, authServices, identity);
  return [
    ...named.errors,
    ...single.errors,
    ...findProviderErrors(authServices, jwtProviders, identity),
    ...authenticated.errors,
    ...findGroupErrors(authenticated.kept),
  ];
}

/** A refused Mapping takes part only in the rules about its match, and about the access of others that share it. */
function isRefused(record: GatewayRecord): boolean {
  return record.kind === 'Mapping' && record.refusal !== undefined;
}

/** All Mappings of a route of the Gateway API may have its name. */
function mayShareName(record: GatewayRecord): boolean {
  return isRefused(record) || (record.kind === 'Mapping' && record.gatewayRoute !== undefined);
}

/** Keeps the first record of each key, with an error for every later one. Keeps all records without a key. */
export function keepFirst<T>(
  records: readonly T[],
  keyOf: (record: T) => string | undefined,
  clash: (later: T, first: T) => ConfigurationError,
): Kept<T> {
  const firsts = new Map<string, T>();
  const kept: T[] = [];
  const errors: ConfigurationError[] = [];
  for (const record of records) {
    const key = keyOf(record);
    const first = key === undefined ? undefined : firsts.get(key);
    if (first !== undefined) {
      errors.push(clash(record, first));
      continue;
    }
    if (key !== undefined) firsts.set(key, record);
    kept.push(record);
  }
  return { kept, errors };
}

/** Returns the name that errors show, such as `Mapping orders`. */
export function fullName({ kind, name }: Pick<GatewayRecord, 'kind' | 'name'>): string {
  return `${kind} ${name}`;
}

/** Returns the error of a valid record that cannot be used. */
export function recordError(record: GatewayRecord, fault: Fault, other?: GatewayRecord): ConfigurationError {
  return { source: record.source, record: fullName(record), ...fault, other: other?.source };
}

function sameName(later: GatewayRecord, first: GatewayRecord): ConfigurationError {
  const message = `another ${first.kind} already has this name`;
  return recordError(later, { message, remedy: 'Rename one of the two, or remove it.' }, first);
}

/**
 * Returns equal keys for records that exclude each other: default auth services, rate-limit services, versions of a
 * prefix.
 */
function exclusiveKey(record: GatewayRecord): string | undefined {
  if (record.kind === 'Version') return `${record.kind} ${record.prefix}`;
  const isSingle = record.kind === 'RateLimitService' || (record.kind === 'AuthService' && record.isDefault);
  return isSingle ? record.kind : undefined;
}

function exclusionError(later: GatewayRecord, first: GatewayRecord): ConfigurationError {
  return recordError(later, exclusionFault(later, fullName(first)), first);
}

function exclusionFault(later: GatewayRecord, first: string): Fault {
  switch (later.kind) {
    case 'AuthService': {
      const remedy = `Set default: false here, and auth_service: ${later.name} in the mappings that use it.`;
      return { message: `${first} is already the default`, remedy };
    }
    case 'Version':
      return { message: `${first} already has the prefix ${later.prefix}`, remedy: 'Keep one of the two.' };
    default:
      return {
        message: `${first} already exists, and only one ${later.kind} is supported`,
        remedy: `Keep one ${later.kind}.`,
      };
  }
}

/** Rejects mappings whose auth service is missing: they would be open, or would use another one. */
function keepAuthenticated(
  mappings: readonly Mapping[],
  services: readonly AuthService[],
  identity: IdentityHeaders,
): Kept<Mapping> {
  const names = new Set(services.map(({ name }) => name));
  const hasDefault = services.length === 0 || services.some(({ isDefault }) => isDefault);
  const errors: ConfigurationError[] = [];
  const kept: Mapping[] = [];
  for (const mapping of mappings) {
    const faults = isRefused(mapping)
      ? []
      : [serviceFault(mapping, names, hasDefault), identityFault(mapping, identity), claimsFault(mapping, services)];
    const found = faults.filter((fault) => fault !== undefined);
    errors.push(...found.map((fault) => recordError(mapping, fault)));
    if (found.length === 0) kept.push(mapping);
  }
  return { kept, errors };
}

function serviceFault(mapping: Mapping, names: ReadonlySet<string>, hasDefault: boolean): Fault | undefined {
  const { authService, bypassAuth, redirect } = mapping;
  if (authService !== undefined) {
    if (names.has(authService)) return undefined;
    return {
      message: `there is no AuthService ${quote(authService)}${didYouMean(authService, names)}`,
      remedy: `Add an AuthService with this name${names.size === 0 ? '' : `, or use one of ${[...names].join(', ')}`}.`,
    };
  }
  if (hasDefault || bypassAuth || redirect !== undefined) return undefined;
  return {
    message: 'has no auth_service, and no AuthService is the default',
    remedy: `Set auth_service: ${[...names][0]} here, or default: true in one AuthService.`,
  };
}

/**
 * Identity headers come from the auth service only. They are removed from clients' requests and must reach the service
 * unchanged.
 */
function identityFault(mapping: Mapping, identity: IdentityHeaders): Fault | undefined {
  const added = mapping.requestHeaders.add.find(({ name }) => identity.has(name));
  if (added !== undefined) {
    return {
      message: `add_request_headers sets ${quote(added.name)}, which only ${identity.get(added.name)} can set`,
      remedy: 'Choose another name: services rely on this header to identify the client.',
    };
  }
  const matched = mapping.headers.find(({ name }) => identity.has(name));
  if (matched === undefined) return undefined;
  return {
    message: `matches the header ${quote(matched.name)}, which is removed before mappings are matched`,
    remedy: `Remove it: ${identity.get(matched.name)} sets it after the mapping is chosen.`,
  };
}

/** The record that sets each identity header. */
type IdentityHeaders = ReadonlyMap<string, string>;

export function identityHeadersOf({
  authServices,
  jwtProviders,
}: Pick<RecordLists, 'authServices' | 'jwtProviders'>): IdentityHeaders {
  return new Map([
    ...jwtProviders.flatMap((record) => record.claimToHeaders.map(({ header }) => [header, fullName(record)] as const)),
    ...authServices.flatMap((record) =>
      record.allowedAuthorizationHeaders.map((name) => [name, fullName(record)] as const),
    ),
  ]);
}

/** Only tokens have claims, so a mapping whose auth service reads none would reject every request. */
function claimsFault(mapping: Mapping, services: readonly AuthService[]): Fault | undefined {
  const { requireClaims, bypassAuth } = mapping;
  if (requireClaims.length === 0) return undefined;
  if (bypassAuth) {
    const remedy = 'Remove bypass_auth, so that tokens are checked, or require_claims.';
    return { message: 'require_claims has no effect with bypass_auth: true', remedy };
  }
  const service = authServiceOf(mapping, services);
  if (service !== undefined && service.providers.length > 0) return undefined;
  const message =
    service === undefined
      ? 'require_claims needs an AuthService that checks tokens, and there is none'
      : `require_claims needs tokens, and ${fullName(service)} accepts none`;
  return { message, remedy: 'Add a JwtProvider, and list it in providers of the AuthService with auth_service: auth.' };
}

/** Reports providers that do not exist, that a token could not choose between, and headers with two meanings. */
function findProviderErrors(
  services: readonly AuthService[],
  providers: readonly JwtProvider[],
  identity: IdentityHeaders,
): readonly ConfigurationError[] {
  const byName = new Map(providers.map((record) => [record.name, record]));
  const ofServices = services.flatMap((service) => {
    const used = service.providers.map((name) => byName.get(name)).filter((found) => found !== undefined);
    const unknown = service.providers.filter((name) => !byName.has(name));
    return [
      ...unknown.map((name) => recordError(service, unknownProviderFault(name, [...byName.keys()]))),
      ...sameIssuerErrors(service, used),
      ...used.flatMap((provider) => userHeaderErrors(provider, service)),
      ...strippedKeyErrors(service, identity),
    ];
  });
  return [...ofServices, ...providers.flatMap((provider) => strippedTokenErrors(provider, identity))];
}

function unknownProviderFault(name: string, known: readonly string[]): Fault {
  const others = known.length === 0 ? '' : `, or use one of ${known.join(', ')}`;
  return {
    message: `there is no JwtProvider ${quote(name)}${didYouMean(name, known)}`,
    remedy: `Add a JwtProvider with this name${others}.`,
  };
}

function sameIssuerErrors(service: AuthService, used: readonly JwtProvider[]): readonly ConfigurationError[] {
  return used.flatMap((provider, index) => {
    const first = used.slice(0, index).find(({ issuer }) => issuer === provider.issuer);
    if (first === undefined) return [];
    const message = `providers lists ${first.name} and ${provider.name}, which have the same issuer`;
    return [
      recordError(
        service,
        { message, remedy: 'Keep one of the two: the issuer of a token selects its provider.' },
        provider,
      ),
    ];
  });
}

/** The first header of the AuthService names the user, whoever it is, so no other claim may be in it. */
function userHeaderErrors(provider: JwtProvider, service: AuthService): readonly ConfigurationError[] {
  const userHeaders =
    service.allowedAuthorizationHeaders.length === 0 ? [defaultUserHeader] : service.allowedAuthorizationHeaders;
  const found = provider.claimToHeaders.find(({ header }) => userHeaders.includes(header));
  if (found === undefined) return [];
  const message = `claim_to_headers sets ${quote(found.header)}, in which ${fullName(service)} names the user`;
  return [
    recordError(provider, { message, remedy: `Write user_claim: ${found.claim}, or choose another header.` }, service),
  ];
}

const defaultUserHeader = 'x-travel-user';

function strippedKeyErrors(service: AuthService, identity: IdentityHeaders): readonly ConfigurationError[] {
  const { apiKeyHeader = '' } = service;
  const setter = identity.get(apiKeyHeader);
  if (setter === undefined) return [];
  const message = `api_key_header reads ${quote(apiKeyHeader)}, which is removed from clients' requests`;
  return [recordError(service, { message, remedy: `Choose another header: ${setter} sets it.` })];
}

function strippedTokenErrors(provider: JwtProvider, identity: IdentityHeaders): readonly ConfigurationError[] {
  const found = provider.fromHeaders.find(({ name }) => identity.has(name));
  if (found === undefined) return [];
  const message = `from_headers reads ${quote(found.name)}, which is removed from clients' requests`;
  return [recordError(provider, { message, remedy: `Choose another header: ${identity.get(found.name)} sets it.` })];
}

/** Allows several mappings with the same match only as weighted canaries and a shadow. */
function findGroupErrors(mappings: readonly Mapping[]): readonly ConfigurationError[] {
  const groups = new Map<string, Mapping[]>();
  for (const mapping of mappings) {
    const key = groupOf(mapping);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [mapping]);
    else group.push(mapping);
  }
  return [...groups.values()].flatMap(groupErrors);
}

/** Returns at most one error for each mapping. */
function groupErrors(group: readonly Mapping[]): readonly ConfigurationError[] {
  if (group.length === 1 && group[0]?.weight === undefined && !group[0]?.shadow) return [];
  const [shadow, ...more] = group.filter((mapping) => mapping.shadow);
  const { kept: members, errors } = keepMembers(group.filter((mapping) => !mapping.shadow));
  const found = [...errors, ...more.map((mapping) => clashError(mapping, shadowClash(shadow ?? mapping)))];
  return [...found, ...(found.length === 0 ? missingWeight(members) : []), ...shadowWithoutTarget(shadow, members)];
}

/** Keeps those that can share requests. */
function keepMembers(mappings: readonly Mapping[]): Kept<Mapping> {
  const kept: Mapping[] = [];
  const errors: ConfigurationError[] = [];
  let [sum, withoutWeight]: [number, Mapping?] = [0];
  for (const mapping of mappings) {
    const clash = memberClash(mapping, { first: kept[0], withoutWeight, sum });
    if (clash !== undefined) {
      errors.push(clashError(mapping, clash));
      continue;
    }
    kept.push(mapping);
    sum += mapping.weight ?? 0;
    if (mapping.weight === undefined) withoutWeight = mapping;
  }
  return { kept, errors };
}

function clashError(mapping: Mapping, { fault, other }: Clash): ConfigurationError {
  return recordError(mapping, fault, other);
}

interface Clash {
  readonly fault: Fault;
  readonly other: Mapping;
}

function shadowClash(shadow: Mapping): Clash {
  const message = `Mapping ${shadow.name} is already the shadow for these requests`;
  return { fault: { message, remedy: 'Keep only one shadow for the same match.' }, other: shadow };
}

/** Those that share requests so far. A group may have thousands, so each is compared with what is known of all. */
interface Members {
  readonly first: Mapping | undefined;
  readonly withoutWeight: Mapping | undefined;
  /** Of the weights. */
  readonly sum: number;
}

function memberClash(mapping: Mapping, { first, withoutWeight, sum }: Members): Clash | undefined {
  if (first === undefined) return undefined;
  return (
    secondWithoutWeight(mapping, withoutWeight) ??
    overweight(mapping, sum + (mapping.weight ?? 0), first) ??
    disagreement(mapping, first)
  );
}

/** Allows one mapping without a weight, which gets the rest of the requests. */
function secondWithoutWeight(mapping: Mapping, other: Mapping | undefined): Clash | undefined {
  if (mapping.weight !== undefined || other === undefined) return undefined;
  const message = isPathAlone(mapping)
    ? `the prefix ${quote(mapping.prefix)} already belongs to Mapping ${other.name}`
    : `Mapping ${other.name} matches the same requests under ${quote(mapping.prefix)}`;
  const remedy = 'Give the two mappings different conditions, or split the requests by giving one of them a weight.';
  return { fault: { message, remedy }, other };
}

function overweight(mapping: Mapping, sum: number, first: Mapping): Clash | undefined {
  if (sum <= 100 || hasFreeWeights(mapping)) return undefined;
  const message = `its weight of ${mapping.weight} raises the total for these requests to ${sum}, above 100`;
  return { fault: { message, remedy: 'Make the weights add up to 100.' }, other: first };
}

/** Requires the same access rules in all mappings of a group, because chance decides which of them gets a request. */
function disagreement(mapping: Mapping, first: Mapping): Clash | undefined {
  const key = groupKeys.find((one) => !isSame(Reflect.get(mapping, one), Reflect.get(first, one)));
  if (key === undefined) return undefined;
  const { name } = mappingFields[key];
  const message = `does not have the same ${name} as Mapping ${first.name}, with which it shares requests`;
  return {
    fault: { message, remedy: `Set the same ${name} in both: chance decides which of the two gets a request.` },
    other: first,
  };
}

function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** The weights of the Gateway API are proportions, which add up to anything. */
function hasFreeWeights({ gatewayRoute }: Mapping): boolean {
  return gatewayRoute !== undefined;
}

/** Reports weights that do not add up at the last mapping, where a person reading from the top would notice it. */
function missingWeight(members: readonly Mapping[]): readonly ConfigurationError[] {
  // A refused one takes the rest.
  if (members.some(isRefused) || members.some(hasFreeWeights)) return [];
  const last = members.at(-1);
  const sum = weightOf(members);
  if (last === undefined || sum === 100 || members.some(({ weight }) => weight === undefined)) return [];
  const message = `the weights of the mappings for these requests add up to ${sum}, not 100`;
  const remedy = 'Raise one of them, or remove the weight of the mapping that should get the rest.';
  return [recordError(last, { message, remedy }, members.length > 1 ? members[0] : undefined)];
}

function shadowWithoutTarget(shadow: Mapping | undefined, members: readonly Mapping[]): readonly ConfigurationError[] {
  if (shadow === undefined || members.some(({ redirect }) => redirect === undefined)) return [];
  const message = 'no mapping matches the same requests, so there is nothing to copy';
  return [
    recordError(shadow, { message, remedy: 'Add the mapping whose requests it should copy, with the same match.' }),
  ];
}

export function weightOf(members: readonly Mapping[]): number {
  return members.reduce((sum, { weight = 0 }) => sum + weight, 0);
}
