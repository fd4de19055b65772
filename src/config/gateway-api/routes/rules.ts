/** The rules of a route as Mappings that are still to be read: one for each match, hostname and backend. */
import { isDeepStrictEqual } from 'node:util';
import { isMap } from '#foundation';
import { parseDuration } from '../../fields/values.ts';
import type { ClusterObject } from '../../objects/object.ts';
import type { AttachedPolicy, GatewayRoute } from '../gateway-route.ts';
import { policyOfRedirect } from '../route-policy.ts';
import {
  type ObjectReference,
  type RedirectSpec,
  type RouteKind,
  type RouteSpec,
  type RuleSpec,
  specOf,
} from '../specs.ts';
import type { Problem } from '../status.ts';
import type { Reach } from './attachments.ts';
import { joinedHeaders, type ReadFilters, readFilters } from './filters.ts';
import { type ReadMatch, readMatches } from './matches.ts';
import { type BackendOf, noBackend, readMirror, redirectShare, type Share, sharesOf } from './shares.ts';

/** The rules of a route. Plain data. */
export interface RouteRules {
  readonly documents: readonly RouteDocument[];
  /** Whether there are rules that have no documents, because there are too many or because they cannot be read. */
  readonly isPartial: boolean;
  /** Why the route is refused as a whole. */
  readonly unsupported: readonly string[];
  /** The first of what its rules refer to that does not exist, or may not be used. */
  readonly unresolved: Problem | undefined;
}

/** A Mapping, as far as the fields of a record can say it, and what they cannot. */
export interface RouteDocument {
  /** `spec.rules[0]`, for errors. */
  readonly place: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly gatewayRoute: GatewayRoute;
  /** The percentage of the requests for its match. Undefined for all. */
  readonly weight: number | undefined;
  readonly redirect: RedirectSpec | undefined;
  /** Whether its path ends with a slash that matters. */
  readonly hasFinalSlash: boolean;
  /** Whether its CORS permits credentials. */
  readonly allowsCredentials: boolean;
}

/** The fields of a RoutePolicy, or why it cannot be used. */
export interface Policy {
  /** `RoutePolicy shop/gold`. */
  readonly name: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly problem: Problem | undefined;
}

export interface RuleParts {
  readonly reach: readonly Reach[];
  readonly backendOf: BackendOf;
  readonly policyOf: (reference: ObjectReference) => Policy;
}

/** Returns a route with its rules, for the acceptance: the same object as before, if they have not changed. */
export function withRules(
  { object, rules }: { readonly object: ClusterObject; readonly rules: RouteRules },
  before: ClusterObject | undefined,
): ClusterObject {
  if (before !== undefined && before.createdAt === object.createdAt && isDeepStrictEqual(rulesOf(before), rules))
    return before;
  return { ...object, value: { ...Object(object.value), rules } };
}

/** The rules of a route that `withRules` has returned. */
export function rulesOf({ value }: ClusterObject): RouteRules {
  return (value as { readonly rules: RouteRules }).rules;
}

/** Far more than any team has. The rest would fill the memory. */
const documentsMax = 2_000;

/** A condition that is left out would match more requests than meant. */
const matchMembers: readonly string[] = ['path', 'method', 'headers', 'queryParams'];

const ruleMembers: readonly string[] = ['name', 'matches', 'filters', 'backendRefs', 'timeouts'];

export function readRules(route: ClusterObject, parts: RuleParts): RouteRules {
  const { rules = [{}] } = specOf<RouteSpec>(route);
  let left = documentsMax;
  const read = rules.map((rule, index) => {
    const one = readRule(route, rule, { ...parts, index, left });
    left -= one.documents.length;
    return one;
  });
  const isPartial = read.some((one) => one.isPartial);
  const excess = isPartial ? [`more than ${documentsMax} Mappings: split the route`] : [];
  return {
    documents: read.flatMap((one) => one.documents),
    isPartial,
    unsupported: [...read.flatMap((one) => one.unsupported), ...excess],
    unresolved: read.map((one) => one.unresolved).find((problem) => problem !== undefined),
  };
}

interface OneRuleParts extends RuleParts {
  readonly index: number;
  /** How many documents it may have. */
  readonly left: number;
}

function readRule(route: ClusterObject, rule: RuleSpec, parts: OneRuleParts): RouteRules {
  const place = `spec.rules[${parts.index}]`;
  const filters = readFilters(rule.filters);
  const policy = joinPolicies(filters, parts);
  const matches = readMatches(route.kind as RouteKind, rule.matches);
  const shares = filters.redirect === undefined ? sharesOf(rule.backendRefs, parts.backendOf) : [redirectShare];
  const mirror = filters.mirror && readMirror(filters.mirror, parts.backendOf);
  const problems = [policy.problem, ...shares.map(({ problem }) => problem), mirror?.problem];
  const isPrefix = matches.every((match) => match.isPrefix);
  const targets = [...shares, ...(policy.problem === undefined ? (mirror?.shares ?? []) : [])];
  // Counted before they are made: a small route may have as many as would fill the memory.
  const isPartial = matches.length * parts.reach.length * targets.length > parts.left;
  return {
    documents: (isPartial ? [] : matches).flatMap((match, matchIndex) =>
      parts.reach.flatMap((reach) =>
        targets.map((share, shareIndex) =>
          documentOf(share, {
            route,
            rule,
            filters,
            policy,
            match,
            reach,
            place,
            gatewayRoute: gatewayRouteOf(route, [parts.index, matchIndex], reach, policy),
            name: nameOf(route, rule.name ?? parts.index + 1, targets.length > 1 ? shareIndex + 1 : undefined),
          }),
        ),
      ),
    ),
    isPartial,
    unsupported: [
      ...Object.keys(rule).flatMap((name) => (ruleMembers.includes(name) ? [] : `${name} is not supported`)),
      ...(rule.matches ?? []).flatMap((match) =>
        Object.keys(match).flatMap((name) => (matchMembers.includes(name) ? [] : `matches: ${name} is not supported`)),
      ),
      ...filters.unsupported,
      ...shares.flatMap(({ filters: { unsupported } }) => unsupported),
      ...(filters.path?.type === 'ReplacePrefixMatch' && !isPrefix ? ['replacePrefixMatch needs a PathPrefix'] : []),
    ].map((message) => `${place}: ${message}`),
    unresolved: problems.find((problem) => problem !== undefined && problem !== noBackend),
  };
}

interface JoinedPolicies {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly problem: Problem | undefined;
  readonly attached: readonly AttachedPolicy[];
}

/** Of the same field in several policies, the last counts. */
function joinPolicies({ extensions, redirect }: ReadFilters, { policyOf }: RuleParts): JoinedPolicies {
  const found = extensions.map(policyOf);
  const broken = found.find(({ problem }) => problem !== undefined);
  if (broken !== undefined) return { fields: {}, problem: broken.problem, attached: [] };
  const fieldsOf = ({ fields }: Policy) => (redirect === undefined ? fields : policyOfRedirect(fields));
  const deciding = new Map(found.flatMap((policy) => Object.keys(fieldsOf(policy)).map((name) => [name, policy])));
  return {
    fields: Object.assign({}, ...found.map(fieldsOf)),
    problem: undefined,
    attached: found.map((policy) => ({
      name: policy.name,
      fields: Object.keys(fieldsOf(policy)).filter((name) => deciding.get(name) === policy),
    })),
  };
}

interface DocumentParts {
  readonly route: ClusterObject;
  readonly rule: RuleSpec;
  readonly filters: ReadFilters;
  readonly policy: JoinedPolicies;
  readonly match: ReadMatch;
  readonly reach: Reach;
  readonly place: string;
  readonly gatewayRoute: GatewayRoute;
  readonly name: string;
}

function documentOf(share: Share, parts: DocumentParts): RouteDocument {
  const { route, filters, policy, match, reach, place, gatewayRoute, name, rule } = parts;
  const problem = policy.problem ?? share.problem;
  const own = { name, ...match.fields, ...hostFields(reach) };
  if (filters.redirect !== undefined) {
    return {
      place,
      fields: { ...policy.fields, ...own, ...redirectFields(filters, filters.redirect) },
      gatewayRoute: { ...gatewayRoute, fault: problem?.message },
      weight: undefined,
      redirect: withPort(filters.redirect, reach),
      hasFinalSlash: match.hasFinalSlash,
      allowsCredentials: filters.allowsCredentials,
    };
  }
  const fields = problem === undefined ? share.fields : fieldsWithoutBackend(route);
  return {
    place,
    fields: {
      ...policy.fields,
      ...own,
      ...joinedHeaders(filters.fields, share.filters.fields),
      ...rewriteFields(filters),
      ...timeoutFields(rule, policy.fields),
      ...fields,
      ...upgradeFields(policy.fields, fields),
    },
    gatewayRoute: { ...gatewayRoute, fault: problem?.message, fullPath: fullPathOf(filters) },
    weight: share.weight,
    redirect: undefined,
    hasFinalSlash: match.hasFinalSlash,
    allowsCredentials: filters.allowsCredentials,
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
  { attached }: JoinedPolicies,
): GatewayRoute {
  const numbers = indexes.map((index) => String(index + 1).padStart(4, '0'));
  return {
    createdAtS: Date.parse(createdAt) / 1000,
    place: [`${namespace}/${name}`, ...numbers, kind].join(' '),
    scheme,
    otherHosts,
    fullPath: undefined,
    policies: attached,
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
