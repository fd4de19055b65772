/** Makes records and certificates of a cluster's Gateways and routes, and says what their status has to be. */
import { messageOf } from '#foundation';
import { type ConfigurationError, type Fault, fileError, valueAt } from '../errors.ts';
import { type ClusterObject, nameOfObject, type ObjectVerdict } from '../objects/object.ts';
import { ownGroup } from '../objects/own-kinds.ts';
import type { ServedCertificate } from '../tls/served-certificates.ts';
import { mapInTurns } from '../turns.ts';
import { supportedFeatures } from './features.ts';
import {
  classStatus,
  definedOtherwise,
  type GatewayOptions,
  gatewayFaults,
  gatewayStatus,
  isOwnClass,
  type ReadGateway,
  readGateway,
} from './gateways.ts';
import { createGrants } from './grants.ts';
import { createKeyPairs, type KeyPairs } from './key-pairs.ts';
import { isProgrammed, type Listener, type ServedPorts } from './listeners.ts';
import { isPolicy, readPolicy, routePolicyKind } from './route-policy.ts';
import { type Attachment, attachmentsOf, type LabelsOf, type OwnGateway, reachOf } from './routes/attachments.ts';
import { readBackend } from './routes/backends.ts';
import { type Policy, type RouteRules, readRules, rulesOf, withRules } from './routes/rules.ts';
import { controllerName, type GatewaySpec, isRoute, type ObjectReference, specOf } from './specs.ts';
import { conditionOf, type DesiredStatus, type Problem } from './status.ts';
import { unknownNames } from './unknown-names.ts';

export interface GatewayApiOptions extends GatewayOptions {
  readonly ports: ServedPorts;
}

export interface ResolvedGatewayApi {
  /** The routes that a listener serves, with their `rules`, for the acceptance. */
  readonly routes: readonly ClusterObject[];
  /** Of two for the same host, the first counts. */
  readonly certificates: readonly ServedCertificate[];
  /** What is served in part or not at all. */
  readonly notices: readonly ConfigurationError[];
  /** What all objects have to say, after the routes were accepted or refused. */
  readonly statusesWith: (verdicts: readonly ObjectVerdict[]) => readonly DesiredStatus[];
}

export interface GatewayApi {
  /**
   * `objects`: those of the Gateway API and what they refer to, the oldest first. `records`: all others. Must not be called
   * concurrently. Requests can run in between.
   */
  readonly resolve: (
    objects: readonly ClusterObject[],
    records: readonly ClusterObject[],
  ) => Promise<ResolvedGatewayApi>;
  /** Resolves an earlier version of a route with what the last call of `resolve` has found. */
  readonly renew: (route: ClusterObject) => ClusterObject;
}

/** A route that is resolved to the same rules as before is the same object as before. */
export function createGatewayApi(options: GatewayApiOptions): GatewayApi {
  const policies = createPolicies();
  let known: ReadonlyMap<string, ClusterObject> = new Map();
  /** The routes that had a parent of ours. What was read of their own status may be older than what we have written. */
  let attachedOnce: ReadonlySet<string> = new Set();
  let oursBefore: ReadonlySet<string> = new Set();
  let read = (object: ClusterObject): ReadRoute => ({ object, attachments: [], rules: rulesOf(object) });
  const renewed = new Map<string, ClusterObject>();
  const keyPairs = createKeyPairs();

  return {
    renew(route) {
      const now = read(route);
      if (withRules(now, route) === route) return route;
      const object = withRules(now, renewed.get(route.uid));
      renewed.set(route.uid, object);
      return object;
    },
    async resolve(objects, records) {
      keyPairs.keep(objects);
      const { find, gateways, grants } = index(objects, { ...options, pairOf: keyPairs.pairOf }, oursBefore);
      oursBefore = new Set(gateways.all.map(({ object }) => object.uid));
      const listeners = gateways.all.flatMap((gateway) => gateway.listeners);
      const policyIn = policies(records);
      read = (object) =>
        readRoute(object, {
          attachmentsOf: () => attachmentsOf(object, gateways.get, (name) => labelsOf(find('Namespace', '', name))),
          rulesOf: (attachments) =>
            readRules(object, {
              reach: reachOf(object, attachments, listeners),
              backendOf: (spec) =>
                readBackend(object, spec, { grants, serviceOf: (namespace, name) => find('Service', namespace, name) }),
              policyOf: (reference) => policyIn(object.namespace, reference),
            }),
        });
      const routes = await mapInTurns(objects.filter(isRoute), read);
      const withParents = routes.filter((route) => hasParents(route) || attachedOnce.has(route.object.uid));
      attachedOnce = new Set(withParents.map(({ object }) => object.uid));
      const served = routes.filter(({ rules }) => rules.documents.length > 0 || rules.isPartial);
      const withSame = await mapInTurns(served, (route) => withRules(route, known.get(route.object.uid)));
      known = new Map(withSame.map((object) => [object.uid, object]));
      for (const uid of renewed.keys()) if (!known.has(uid)) renewed.delete(uid);
      const attachedTo = countAttached(routes);
      return {
        routes: withSame,
        certificates: listeners.flatMap((one) => (isProgrammed(one) ? (one.certificate ?? []) : [])),
        notices: [
          ...unknownNames(objects, { find, isOurs: ({ uid }) => oursBefore.has(uid) }),
          ...gateways.all.flatMap(gatewayNotices),
          ...routes.flatMap(routeNotices),
        ],
        statusesWith: (verdicts) => [
          ...objects.filter(isOwnClass).map((object) => classStatus(object, supportedFeatures)),
          ...gateways.all.map((gateway) => gatewayStatus(gateway, attachedTo, options)),
          ...routeStatuses(withParents, verdicts),
        ],
      };
    },
  };
}

interface ReadRoute {
  readonly object: ClusterObject;
  readonly attachments: readonly Attachment[];
  readonly rules: RouteRules;
}

interface RouteParts {
  readonly attachmentsOf: () => readonly Attachment[];
  readonly rulesOf: (attachments: readonly Attachment[]) => RouteRules;
}

/** Like a Gateway, a route may throw. It is refused if it is or may be one of ours. */
function readRoute(object: ClusterObject, parts: RouteParts): ReadRoute {
  let attachments: readonly Attachment[] | undefined;
  try {
    attachments = parts.attachmentsOf();
    return { object, attachments, rules: parts.rulesOf(attachments) };
  } catch (cause) {
    const message = `the route cannot be read (${messageOf(cause)}). ${definedOtherwise}`;
    const rules = {
      documents: [],
      isPartial: attachments?.length !== 0,
      unsupported: [message],
      unresolved: undefined,
    };
    return { object, attachments: attachments ?? [], rules };
  }
}

function index(
  objects: readonly ClusterObject[],
  options: GatewayApiOptions & Pick<KeyPairs, 'pairOf'>,
  oursBefore: ReadonlySet<string>,
) {
  const byName = new Map(objects.map((object) => [keyOf(object.kind, object.namespace, object.name), object]));
  const find = (kind: string, namespace: string, name: string) => byName.get(keyOf(kind, namespace, name));
  const grants = createGrants(objects);
  const parts = {
    ports: options.ports,
    grants,
    secretOf: (namespace: string, name: string) => find('Secret', namespace, name),
    pairOf: options.pairOf,
  };
  const all = objects.flatMap((object) => {
    if (object.kind !== 'Gateway') return [];
    const found = find('GatewayClass', '', specOf<GatewaySpec | undefined>(object)?.gatewayClassName ?? '');
    // Nobody else says that a Gateway is not served any more, because its class is gone.
    const isOurs = found === undefined ? oursBefore.has(object.uid) : isOwnClass(found);
    return isOurs ? readGateway(object, { ...options, hasClass: found !== undefined }, parts) : [];
  });
  const gatewaysByName = new Map(all.map((one) => [`${one.object.namespace}/${one.object.name}`, one]));
  const get = (namespace: string, name: string): OwnGateway | undefined => gatewaysByName.get(`${namespace}/${name}`);
  return { find, grants, gateways: { all, get } };
}

function keyOf(kind: string, namespace: string, name: string): string {
  return `${kind} ${namespace}/${name}`;
}

function labelsOf(namespace: ClusterObject | undefined): ReturnType<LabelsOf> {
  if (namespace === undefined) return undefined;
  const { metadata } = namespace.value as { readonly metadata?: { readonly labels?: ReturnType<LabelsOf> } };
  return metadata?.labels ?? {};
}

/** Keeps the last valid version of each policy. */
function createPolicies() {
  let valid: ReadonlyMap<string, Policy['fields']> = new Map();

  return function policiesAmong(records: readonly ClusterObject[]) {
    const objects = records.filter(isPolicy);
    valid = new Map(
      objects.flatMap((object) => {
        const { fields, errors } = readPolicy(object);
        const last = errors.length === 0 ? fields : valid.get(object.uid);
        return last === undefined ? [] : [[object.uid, last] as const];
      }),
    );
    const byName = new Map(objects.map((object) => [`${object.namespace}/${object.name}`, object]));

    return function policyIn(namespace: string, { group, kind, name }: ObjectReference): Policy {
      const label = `${kind} ${namespace}/${name}`;
      if (group !== ownGroup || kind !== routePolicyKind)
        return withoutPolicy('InvalidKind', `${label} of the group "${group}" is no filter of frontdesk`);
      const object = byName.get(`${namespace}/${name}`);
      if (object === undefined) return withoutPolicy('FilterNotFound', `there is no ${label}`);
      const fields = valid.get(object.uid);
      return fields === undefined
        ? withoutPolicy('FilterNotFound', `${label} is refused`)
        : { fields, problem: undefined };
    };
  };
}

function withoutPolicy(reason: string, message: string): Policy {
  const remedy = `Name a valid ${routePolicyKind} of the group ${ownGroup} in this namespace.`;
  return { fields: {}, problem: { reason, message, remedy } };
}

function countAttached(routes: readonly ReadRoute[]): (listener: Listener) => number {
  const counts = new Map<Listener, number>();
  for (const { attachments } of routes) {
    const attached = new Set(attachments.flatMap(({ listeners }) => listeners));
    for (const listener of attached) counts.set(listener, (counts.get(listener) ?? 0) + 1);
  }
  return (listener) => counts.get(listener) ?? 0;
}

function routeStatuses(routes: readonly ReadRoute[], verdicts: readonly ObjectVerdict[]): readonly DesiredStatus[] {
  const verdictsByUid = new Map(verdicts.map((verdict) => [verdict.object.uid, verdict]));
  return routes.map(({ object, attachments, rules: { unresolved } }) => {
    const refusal = refusalIn(verdictsByUid.get(object.uid));
    const parents = attachments.map(({ parentRef, problem }) => ({
      parentRef,
      controllerName,
      conditions: [
        conditionOf(object, 'Accepted', problem ?? refusal),
        conditionOf(object, 'ResolvedRefs', unresolved),
      ],
    }));
    return { object, status: { kind: 'Route', parents } };
  });
}

/** Whether a route has a parent of ours, or its status had one when it was read. */
function hasParents({ object, attachments }: ReadRoute): boolean {
  const before = valueAt(object.value, ['status', 'parents']);
  const isOurs = (parent: unknown) => valueAt(parent, ['controllerName']) === controllerName;
  return attachments.length > 0 || (Array.isArray(before) && before.some(isOurs));
}

function refusalIn(verdict: ObjectVerdict | undefined): Problem | undefined {
  const [first] = verdict?.errors ?? [];
  return first && { reason: 'UnsupportedValue', message: first.message, remedy: first.remedy };
}

function gatewayNotices(gateway: ReadGateway): readonly ConfigurationError[] {
  return gatewayFaults(gateway).map((fault) => noticeOf(gateway.object, fault));
}

function routeNotices({ object, attachments, rules }: ReadRoute): readonly ConfigurationError[] {
  const problems = [
    ...attachments.map(({ problem }) => problem),
    attachments.length > 0 ? rules.unresolved : undefined,
  ];
  return problems.flatMap((problem) => (problem === undefined ? [] : noticeOf(object, problem)));
}

function noticeOf(object: ClusterObject, { message, remedy }: Fault): ConfigurationError {
  return fileError(nameOfObject(object), message, remedy);
}
