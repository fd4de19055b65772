/** What applies to the requests of a Mapping: who may pass, limits, CORS, upgrades, and fields that differ from the defaults. */
import { isDeepStrictEqual } from 'node:util';
import { formatSource } from '#foundation';
import { formatLimit } from '#ratelimit/limit';
import { describeClaims } from '../fields/required-claims.ts';
import { reachedLimits } from '../limits/reached.ts';
import type { Configuration } from '../load.ts';
import { withoutSecrets } from '../quote.ts';
import { authServiceOf, keyHeaderOf } from './auth-service.ts';
import { type Mapping, mappingDefaults } from './mapping.ts';
import { type MappingFields, mappingFields } from './mapping-fields.ts';
import { matchingFields } from './protection.ts';

/** Plain data, as `frontdesk check --json` prints it. Values that may be secrets are shown as `…`. */
export interface RouteFacts {
  readonly auth: RouteAuth;
  /** The claims that a token must have: `scope: orders`. */
  readonly claims: readonly string[];
  readonly limits: readonly RouteLimit[];
  readonly cors: { readonly origins: readonly string[]; readonly credentials: boolean } | undefined;
  readonly upgrades: readonly string[];
  /** The other fields that differ from the defaults, by their names in records. */
  readonly fields: Readonly<Record<string, FieldValue>>;
}

export type RouteAuth =
  | { readonly open: true; readonly reason: 'redirect' | 'bypass_auth' | 'no AuthService' }
  | {
      readonly open: false;
      readonly name: string;
      /** The header in which clients may send an API key. */
      readonly key_header: string | undefined;
    };

export interface RouteLimit {
  /** The keys of the descriptor, outermost first, without its values: `user › path=…`. */
  readonly descriptor: string;
  /** Such as `10 per minute`. Undefined if no file here has limits for the domain, so that only the service knows. */
  readonly limit: string | undefined;
  readonly source: string | undefined;
}

type FieldValue = string | number | boolean | readonly string[];

type Records = Pick<Configuration, 'authServices' | 'rateLimitServices' | 'limits' | 'users'>;

export function routeFacts(mapping: Mapping, records: Records): RouteFacts {
  const { cors, allowUpgrade } = mapping;
  return {
    auth: authOf(mapping, records),
    claims: mapping.requireClaims.map((required) => describeClaims([required])),
    limits: limitsOf(mapping, records),
    cors: cors && { origins: cors.origins, credentials: cors.credentials },
    upgrades: allowUpgrade,
    fields: fieldsOf(mapping),
  };
}

/** A configuration is invalid if a guarded mapping names no AuthService and none is the default. */
function authOf(mapping: Mapping, { authServices, users }: Records): RouteAuth {
  const { refusal, redirect, bypassAuth, authService, gatewayRoute } = mapping;
  if (refusal !== undefined) return { open: false, name: 'nobody: refused', key_header: undefined };
  if (gatewayRoute?.fault !== undefined) return { open: false, name: 'nobody: no backend', key_header: undefined };
  if (redirect !== undefined) return { open: true, reason: 'redirect' };
  if (bypassAuth) return { open: true, reason: 'bypass_auth' };
  const record = authServiceOf({ authService }, authServices);
  const name = authService ?? record?.name;
  if (name === undefined) return { open: true, reason: 'no AuthService' };
  return { open: false, name, key_header: record && keyHeaderOf(record, users) };
}

function limitsOf(mapping: Mapping, { rateLimitServices: [service], limits }: Records): readonly RouteLimit[] {
  const groups = service === undefined ? [] : (mapping.labels[service.domain] ?? []);
  const domain = limits.find((one) => one.domain === service?.domain);
  if (domain === undefined)
    return groups.map(({ labels }) => {
      const descriptor = labels.map(({ name }) => name).join(' › ');
      return { descriptor, limit: undefined, source: undefined };
    });
  return reachedLimits(groups, mapping.service, domain.descriptors).map(({ descriptor, limit, source }) => {
    return { descriptor, limit: formatLimit(limit), source: formatSource(source) };
  });
}

/** The fields that say which requests match and where they go, and those that other facts describe. */
const described: ReadonlySet<string> = new Set<keyof Mapping>([
  ...matchingFields,
  'redirect',
  'labels',
  'bypassAuth',
  'authService',
  'requireClaims',
  'cors',
  'allowUpgrade',
  'requestHeaders',
  'responseHeaders',
  'refusal',
  'isUntrusted',
]);

function fieldsOf(mapping: Mapping): Readonly<Record<string, FieldValue>> {
  const { requestHeaders, responseHeaders } = mapping;
  const headerRules = {
    addRequestHeaders: requestHeaders.add.map(({ name }) => name),
    removeRequestHeaders: requestHeaders.remove,
    addResponseHeaders: responseHeaders.add.map(({ name }) => name),
    removeResponseHeaders: responseHeaders.remove,
  };
  const plain = Object.entries(defaultsFor(mapping)).flatMap(([key, usual]) => {
    const value: unknown = Reflect.get(mapping, key);
    return described.has(key) || isDeepStrictEqual(value, usual) ? [] : [[key, shown(value)] as const];
  });
  const rules = Object.entries(headerRules).filter(([, names]) => names.length > 0);
  return Object.fromEntries([...plain, ...rules].map(([key, value]) => [fieldName(key), value]));
}

/** A route of the Gateway API leaves the path as it is. */
function defaultsFor({ gatewayRoute }: Mapping): Partial<Mapping> {
  return gatewayRoute === undefined ? mappingDefaults : { ...mappingDefaults, rewrite: '' };
}

function fieldName(key: string): string {
  return mappingFields[key as keyof MappingFields].name;
}

function shown(value: unknown): FieldValue {
  if (typeof value === 'number' || typeof value === 'boolean') return value;
  if (typeof value === 'string') return withoutSecrets(value);
  return Array.isArray(value) && value.every((item) => typeof item === 'string') ? value : '…';
}
