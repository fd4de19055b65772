/** Makes records and certificates of a cluster's Gateways and routes, and says what their status has to be. */
import { type ConfigurationError, fileError } from '../errors.ts';
import { type ClusterObject, nameOfObject, type ObjectVerdict } from '../objects/object.ts';
import type { ServedCertificate } from '../tls/served-certificates.ts';
import { mapInTurns } from '../turns.ts';
import { supportedFeatures } from './features.ts';
import {
  classStatus,
  type GatewayOptions,
  gatewayFaults,
  gatewayStatus,
  isOwnClass,
  type ReadGateway,
  readGateway,
} from './gateways.ts';
import { createGrants } from './grants.ts';
import { createKeyPairs, type KeyPairs } from './key-pairs.ts';
import { isProgrammed, type ServedPorts } from './listeners.ts';
import { createPolicies } from './policies.ts';
import { attachmentsOf, type LabelsOf, type OwnGateway, reachOf } from './routes/attachments.ts';
import { readBackend } from './routes/backends.ts';
import {
  countAttached,
  hasParents,
  type ResolvedRoute,
  resolveRoute,
  routeNotices,
  routeStatuses,
} from './routes/resolved-route.ts';
import { readRules, rulesOf, withRules } from './routes/rules.ts';
import { type GatewaySpec, isRoute, specOf } from './specs.ts';
import type { DesiredStatus } from './status.ts';
import { unknownClasses, unknownGateways } from './unknown-names.ts';
import { countUnserved, type UnservedCounts } from './unserved.ts';

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
  readonly unserved: UnservedCounts;
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
  let read = (object: ClusterObject): ResolvedRoute => ({ object, attachments: [], rules: rulesOf(object) });
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
      const policyIn = await policies(records);
      read = (object) =>
        resolveRoute(object, {
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
      const served = routes.filter(({ rules }) => rules.mappingCount > 0 || rules.isPartial);
      const withSame = await mapInTurns(served, (route) => withRules(route, known.get(route.object.uid)));
      known = new Map(withSame.map((object) => [object.uid, object]));
      for (const uid of renewed.keys()) if (!known.has(uid)) renewed.delete(uid);
      const attachedTo = countAttached(routes);
      const unserved = [
        ...unknownClasses(objects, { find, isOurs: ({ uid }) => oursBefore.has(uid) }),
        ...gateways.all.flatMap(gatewayNotices),
        ...routes.flatMap(routeNotices),
      ];
      return {
        routes: withSame,
        certificates: listeners.flatMap((one) => (isProgrammed(one) ? (one.certificate ?? []) : [])),
        notices: [...unserved, ...unknownGateways(objects, { find })],
        unserved: countUnserved(objects, unserved),
        statusesWith: (verdicts) => [
          ...objects.filter(isOwnClass).map((object) => classStatus(object, supportedFeatures)),
          ...gateways.all.map((gateway) => gatewayStatus(gateway, attachedTo, options)),
          ...routeStatuses(withParents, verdicts),
        ],
      };
    },
  };
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

function gatewayNotices(gateway: ReadGateway): readonly ConfigurationError[] {
  const file = nameOfObject(gateway.object);
  return gatewayFaults(gateway).map(({ message, remedy }) => fileError(file, message, remedy));
}
