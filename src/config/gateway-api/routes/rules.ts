/** The rules of a route, of which its Mappings are made: one for each match, hostname and backend. */
import { isDeepStrictEqual } from 'node:util';
import { excessOf, lengthCost, lengthOf, patternCost, patternExcess } from '../../objects/bounds.ts';
import type { ClusterObject } from '../../objects/object.ts';
import type { AttachedPolicy } from '../gateway-route.ts';
import { policyOfRedirect } from '../route-policy.ts';
import { type ObjectReference, type RouteKind, type RouteSpec, type RuleSpec, specOf } from '../specs.ts';
import type { Problem } from '../status.ts';
import type { Reach } from './attachments.ts';
import { type ReadFilters, readFilters } from './filters.ts';
import { type ReadMatch, readMatches } from './matches.ts';
import { type BackendOf, noBackend, readMirror, redirectShare, type Share, sharesOf } from './shares.ts';

/** The rules of a route. Plain data. */
export interface RouteRules {
  /** Those whose Mappings can be made. */
  readonly rules: readonly ReadRule[];
  /** Whether there are others, because there would be too much in them, or they cannot be read. */
  readonly isPartial: boolean;
  /** How many Mappings it has. Regular expressions and long texts count as more. */
  readonly mappingCount: number;
  /** Why the route is refused as a whole. */
  readonly unsupported: readonly string[];
  /** The first of what its rules refer to that does not exist, or may not be used. */
  readonly unresolved: Problem | undefined;
}

/** Everything that Mappings are made from: one for each match, target and hostname. */
export interface ReadRule {
  readonly rule: RuleSpec;
  readonly index: number;
  readonly filters: ReadFilters;
  readonly policy: JoinedPolicies;
  readonly matches: readonly ReadMatch[];
  readonly targets: readonly Share[];
  readonly reach: readonly Reach[];
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

/** Of one route. Far more than any team has. */
const mappingsMax = 2_000;

/** A condition that is left out would match more requests than meant. */
const matchMembers: readonly string[] = ['path', 'method', 'headers', 'queryParams'];

const ruleMembers: readonly string[] = ['name', 'matches', 'filters', 'backendRefs', 'timeouts'];

/** Those of a route of which nothing is known. `isPartial`: whether a Gateway of ours may serve it. */
export function unreadRules(message: string, isPartial = true): RouteRules {
  return { rules: [], isPartial, mappingCount: 0, unsupported: [message], unresolved: undefined };
}

export function readRules(route: ClusterObject, parts: RuleParts): RouteRules {
  const spec = specOf<RouteSpec>(route);
  const isServed = parts.reach.length > 0;
  const excessOfSpec = isServed ? excessOf(spec) : undefined;
  if (excessOfSpec !== undefined) return unreadRules(`the route ${excessOfSpec}: split it`);
  const { rules = [{}] } = spec;
  const read = rules.map((rule, index) => readRule(route, rule, { ...parts, index }));
  const all = read.map(({ rule }) => sizedRule(rule));
  const excess = isServed ? excessIn(all) : undefined;
  const kept = excess === undefined ? all : withoutExcess(all);
  return {
    rules: kept.map(({ rule }) => rule),
    isPartial: excess !== undefined,
    mappingCount: sumOf(kept.map((one) => one.mappings + one.ofLengths + one.ofPatterns)),
    unsupported: [...read.flatMap((one) => one.unsupported), ...(excess === undefined ? [] : [excess])],
    unresolved: read.map((one) => one.unresolved).find((problem) => problem !== undefined),
  };
}

interface SizedRule {
  readonly rule: ReadRule;
  /** How many Mappings it has. */
  readonly mappings: number;
  /** As how many more their lengths count. */
  readonly ofLengths: number;
  /** As how many more the regular expressions in them count. */
  readonly ofPatterns: number;
}

/** One without Mappings, or with so many that they are refused, is not worth the time to measure them. */
function sizedRule(rule: ReadRule): SizedRule {
  const mappings = rule.matches.length * rule.targets.length * rule.reach.length;
  return mappings === 0 || mappings > mappingsMax
    ? { rule, mappings, ofLengths: 0, ofPatterns: 0 }
    : { rule, mappings, ofLengths: lengthCostOf(rule), ofPatterns: patternCostOf(rule) };
}

function excessIn(sized: readonly SizedRule[]): string | undefined {
  const mappings = sumOf(sized.map((one) => one.mappings));
  if (mappings > mappingsMax) return `more than ${mappingsMax} Mappings: split the route`;
  if (mappings + sumOf(sized.map((one) => one.ofLengths)) > mappingsMax) return tooLong;
  const fields = sized.flatMap(({ rule: { matches, targets } }) =>
    targets.flatMap(() => matches.map((match) => match.fields)),
  );
  const excess = patternExcess(fields);
  return excess === undefined ? undefined : `the route ${excess}: split it`;
}

const tooLong = `more than ${mappingsMax} Mappings, as each 4,000 characters of one count as another: split the route, or shorten its policies and filters`;

/** Leaves out each rule that is too much beside those before it. */
function withoutExcess(sized: readonly SizedRule[]): readonly SizedRule[] {
  let kept: readonly SizedRule[] = [];
  for (const one of sized) {
    const more = [...kept, one];
    if (excessIn(more) === undefined) kept = more;
  }
  return kept;
}

function patternCostOf({ policy, matches, targets, reach }: ReadRule): number {
  const ofPolicy = patternCost(policy.fields);
  const ofMatches = matches.map(({ fields }) => patternCost(fields) + ofPolicy);
  return sumOf(ofMatches) * targets.length * reach.length;
}

/** Each Mapping has what its rule and its policies say. */
function lengthCostOf({ policy, filters, matches, targets, reach }: ReadRule): number {
  const ofRule = lengthOf(policy.fields) + lengthOf(filters.fields);
  const ofTargets = targets.map((target) => ofRule + lengthOf(target.filters.fields));
  const costs = matches.map(({ fields }) => {
    const ofMatch = lengthOf(fields);
    return sumOf(ofTargets.map((ofTarget) => lengthCost(ofTarget + ofMatch)));
  });
  return sumOf(costs) * reach.length;
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0);
}

interface OneRule extends Pick<RouteRules, 'unsupported' | 'unresolved'> {
  readonly rule: ReadRule;
}

function readRule(
  route: ClusterObject,
  rule: RuleSpec,
  { index, reach, backendOf, policyOf }: RuleParts & { readonly index: number },
): OneRule {
  const filters = readFilters(rule.filters);
  const policy = joinPolicies(filters, policyOf);
  const matches = readMatches(route.kind as RouteKind, rule.matches);
  const shares = filters.redirect === undefined ? sharesOf(rule.backendRefs, backendOf) : [redirectShare];
  const mirror = filters.mirror && readMirror(filters.mirror, backendOf);
  const problems = [policy.problem, ...shares.map(({ problem }) => problem), mirror?.problem];
  const targets = [...shares, ...(policy.problem === undefined ? (mirror?.shares ?? []) : [])];
  const read = { rule, index, filters, policy, matches, targets, reach };
  return {
    rule: read,
    unsupported: unsupportedIn(read).map((message) => `${placeOf(index)}: ${message}`),
    unresolved: problems.find((problem) => problem !== undefined && problem !== noBackend),
  };
}

function unsupportedIn({ rule, filters, matches, targets }: ReadRule): readonly string[] {
  const isPrefix = matches.every((match) => match.isPrefix);
  return [
    ...Object.keys(rule).flatMap((name) => (ruleMembers.includes(name) ? [] : `${name} is not supported`)),
    ...(rule.matches ?? []).flatMap((match) =>
      Object.keys(match).flatMap((name) => (matchMembers.includes(name) ? [] : `matches: ${name} is not supported`)),
    ),
    ...filters.unsupported,
    ...targets.flatMap((target) => target.filters.unsupported),
    ...(filters.path?.type === 'ReplacePrefixMatch' && !isPrefix ? ['replacePrefixMatch needs a PathPrefix'] : []),
  ];
}

export function placeOf(index: number): string {
  return `spec.rules[${index}]`;
}

interface JoinedPolicies {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly problem: Problem | undefined;
  readonly attached: readonly AttachedPolicy[];
}

/** Of the same field in several policies, the last counts. */
function joinPolicies({ extensions, redirect }: ReadFilters, policyOf: RuleParts['policyOf']): JoinedPolicies {
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
