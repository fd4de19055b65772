/** Makes what the Mappings of a route are read from, of its rules. */
import { isMap } from '#foundation';
import { parseDuration } from '../../fields/values.ts';
import type { ClusterObject } from '../../objects/object.ts';
import type { GatewayRoute } from '../gateway-route.ts';
import type { RedirectSpec, RuleSpec } from '../specs.ts';
import type { Reach } from './attachments.ts';
import { joinedHeaders, type ReadFilters } from './filters.ts';
import type { ReadMatch } from './matches.ts';
import { type Policy, placeOf, type ReadRule, rulesOf } from './rules.ts';
import type { Share } from './shares.ts';

/** The Mappings of a match and a target, as far as the fields of a record can say them, and what they cannot. */
export interface RouteDocument {
  /** `spec.rules[0]`, for errors. */
  readonly place: string;
  /** All but those that say which host. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** The percentage of the requests for its match. Undefined for all. */
  readonly weight: number | undefined;
  /** Whether its path ends with a slash that matters. */
  readonly hasFinalSlash: boolean;
  /** Whether its CORS permits credentials. */
  readonly allowsCredentials: boolean;
  /** One Mapping each. */
  readonly hosts: readonly RouteHost[];
}

export interface RouteHost {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly gatewayRoute: GatewayRoute;
  readonly redirect: RedirectSpec | undefined;
}

/** Makes what the Mappings of a route are read from. A small route may have far more of it than it has itself. */
export function documentsOf(route: ClusterObject): readonly RouteDocument[] {
  return rulesOf(route).rules.flatMap((read) =>
    read.matches.flatMap((match, matchIndex) =>
      read.targets.map((share, shareIndex) => {
        const number = read.targets.length > 1 ? shareIndex + 1 : undefined;
        const name = nameOf(route, read.rule.name ?? read.index + 1, number);
        return documentOf(share, { route, read, match, matchIndex, name });
      }),
    ),
  );
}

interface DocumentParts {
  readonly route: ClusterObject;
  readonly read: ReadRule;
  readonly match: ReadMatch;
  readonly matchIndex: number;
  readonly name: string;
}

function documentOf(share: Share, { route, read, match, matchIndex, name }: DocumentParts): RouteDocument {
  const { filters, policy, rule, index, reach } = read;
  const fault = (policy.problem ?? share.problem)?.message;
  const { redirect, allowsCredentials } = filters;
  const fields = redirect === undefined ? callFields(share, route, read) : redirectFields(filters, redirect);
  const fullPath = redirect === undefined ? fullPathOf(filters) : undefined;
  return {
    place: placeOf(index),
    fields: {
      ...policy.fields,
      name,
      ...match.fields,
      ...fields,
      ...(redirect === undefined && { ...timeoutFields(rule, policy.fields), ...upgradeFields(policy.fields, fields) }),
    },
    weight: redirect === undefined ? share.weight : undefined,
    hasFinalSlash: match.hasFinalSlash,
    allowsCredentials,
    hosts: reach.map((one) => ({
      fields: hostFields(one),
      gatewayRoute: { ...gatewayRouteOf(route, [index, matchIndex], one), policies: policy.attached, fault, fullPath },
      redirect: redirect && withPort(redirect, one),
    })),
  };
}

function callFields(share: Share, route: ClusterObject, { filters, policy }: ReadRule): RouteDocument['fields'] {
  const problem = policy.problem ?? share.problem;
  return {
    ...joinedHeaders(filters.fields, share.filters.fields),
    ...rewriteFields(filters),
    ...(problem === undefined ? share.fields : fieldsWithoutBackend(route)),
  };
}

/** Stands for the service of a Mapping that calls none until it is read. */
const noService = { service: 'nowhere.invalid' };

/** Of a GRPCRoute, so that clients get a status of gRPC. */
function fieldsWithoutBackend({ kind }: ClusterObject): Readonly<Record<string, unknown>> {
  return kind === 'GRPCRoute' ? { ...noService, grpc: true } : noService;
}

/** Without a scheme, the port of another host is that of the listener. */
function withPort(redirect: RedirectSpec, reach: Reach): RedirectSpec {
  const { scheme, hostname, port = scheme === undefined && hostname !== undefined ? reach.port : undefined } = redirect;
  return { ...redirect, ...(port !== undefined && { port }) };
}

/** The same for all matches and hosts of a rule, so that they are counted together. */
function nameOf({ kind, namespace, name }: ClusterObject, rule: string | number, backend: number | undefined): string {
  const whole = `${kind.toLowerCase()}/${namespace}/${name}/${rule}`;
  return backend === undefined ? whole : `${whole}/${backend}`;
}

/** `indexes`: of the rule and of its match. */
function gatewayRouteOf(
  { kind, namespace, name, createdAt }: ClusterObject,
  indexes: readonly [number, number],
  { scheme, otherHosts }: Reach,
): GatewayRoute {
  const numbers = indexes.map((index) => String(index + 1).padStart(4, '0'));
  return {
    createdAtS: Date.parse(createdAt) / 1000,
    place: [`${namespace}/${name}`, ...numbers, kind].join(' '),
    scheme,
    otherHosts,
    fullPath: undefined,
    policies: [],
    fault: undefined,
  };
}

function hostFields({ hostname }: Reach): Readonly<Record<string, unknown>> {
  if (hostname === undefined) return {};
  return hostname.startsWith('*') ? { hostname } : { host: hostname };
}

function rewriteFields({ path }: ReadFilters): Readonly<Record<string, unknown>> {
  return { rewrite: path?.type === 'ReplacePrefixMatch' ? path.replacePrefixMatch || '/' : '' };
}

function fullPathOf({ path }: ReadFilters): string | undefined {
  return path?.type === 'ReplaceFullPath' ? path.replaceFullPath || '/' : undefined;
}

function redirectFields({ path }: ReadFilters, { statusCode = 302 }: RedirectSpec): Readonly<Record<string, unknown>> {
  const target =
    path?.type === 'ReplacePrefixMatch'
      ? { prefix_redirect: path.replacePrefixMatch || '/' }
      : path && { path_redirect: path.replaceFullPath || '/' };
  return { ...noService, host_redirect: true, ...target, redirect_response_code: statusCode };
}

/** Without retries, the time of one attempt is that of all. `0s` is no limit. */
function timeoutFields({ timeouts }: RuleSpec, policy: Policy['fields']): Readonly<Record<string, unknown>> {
  const [whole, each] = [timeouts?.request, timeouts?.backendRequest].map((text) => text && parseDuration(text));
  const retries = policy['retry_policy'];
  if (typeof each === 'number' && each > 0 && isMap(retries))
    return {
      ...(whole !== undefined && { timeout_ms: whole }),
      retry_policy: { ...retries, per_try_timeout_ms: each },
    };
  const limits = [whole, each].filter((one) => typeof one === 'number');
  const shortest = Math.min(...limits.filter((ms) => ms > 0));
  if (limits.length === 0) return {};
  return { timeout_ms: Number.isFinite(shortest) ? shortest : 0 };
}

/** A policy may allow more protocols than the backend's port names. */
function upgradeFields(...fields: readonly Readonly<Record<string, unknown>>[]): Readonly<Record<string, unknown>> {
  const protocols = fields.flatMap((one) => one['allow_upgrade'] ?? []);
  return protocols.length === 0 ? {} : { allow_upgrade: [...new Set(protocols)] };
}
