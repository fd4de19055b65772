/** Prepares mappings and built-in routes for requests: everything that can be computed in advance. */

import { callsService, foldsCase, type LabelGroup, type Mapping, mappingDefaults } from '#config';
import type { Source } from '#foundation';
import { type AddressFault, type Compression, type CompressionRule, createAddressFault } from '#http';
import { type Cluster, createHeaderRules, type HeaderEdits } from '#proxy';
import { describeConditions, type Rule } from '#routing';
import type { AuthStage, AuthStages } from './auth/stage.ts';
import { type Cors, createCors } from './cors.ts';
import { createRouteDescriptors, type RouteDescriptors } from './limits/descriptors.ts';
import type { ProtectionOf } from './protection.ts';
import { authorityOf } from './resolve-service.ts';
import { createRouteTraffic, type RouteTraffic } from './traffic/route-traffic.ts';
import { createTransport, type Handler, inProcess, type Transport, type TransportParts } from './transport.ts';

export interface Route extends Rule {
  /** The record, or an equivalent one for a built-in route. */
  readonly mapping: Omit<Mapping, 'kind' | 'source'>;
  /** The normalised service, equal for all routes to the same service: `orders`, `10.0.0.5:9001`. */
  readonly service: string;
  /** The location of the record. Undefined for a built-in route. */
  readonly source: Source | undefined;
  /** Human-readable conditions besides the prefix, and the share of the requests. */
  readonly conditions: () => readonly string[];
  readonly cors: Cors | undefined;
  /** Undefined when every address may come. */
  readonly addressFault: AddressFault | undefined;
  /** Undefined when the route is open. */
  readonly auth: AuthStage | undefined;
  /** What protects its requests: the same text for routes with the same protection. */
  readonly protection: string;
  readonly descriptors: RouteDescriptors;
  /** The label groups from which the descriptors are built. */
  readonly labels: readonly LabelGroup[];
  readonly transport: Transport;
  /** Applies the mapping's response header rules. Undefined when it has none. */
  readonly editResponse: HeaderEdits['editResponse'] | undefined;
  /** Undefined when its responses are never compressed. */
  readonly compression: CompressionRule | undefined;
  /** Whether it has either of the two. */
  readonly changesResponse: boolean;
  /** The request counts of the route, which survive a reload. */
  readonly traffic: RouteTraffic;
}

/** What the diagnostics read of a route. */
export type RouteSnapshot = Pick<
  Route,
  'name' | 'prefix' | 'precedence' | 'internal' | 'mapping' | 'source' | 'conditions' | 'labels' | 'compression'
> & {
  readonly auth: Pick<AuthStage, 'record' | 'authenticate'> | undefined;
  readonly transport: Pick<Transport, 'describe' | 'timeouts'> & {
    readonly cluster: Pick<Cluster, 'snapshot'> | undefined;
  };
};

/** A built-in route of the server: an app in this process that is not configured by a record. */
export interface InternalRoute {
  readonly name: string;
  readonly prefix: string;
  /** Restricts the route to administrators, through the default auth service. Without one, the route is not served. */
  readonly forAdmins: boolean;
  /** Same as in a mapping. @default '' (the path is unchanged) */
  readonly rewrite?: string;
  /** Excludes the route from the traffic counts, because its responses last as long as a client watches. */
  readonly isLongLived?: boolean | undefined;
  readonly run: Handler;
}

export interface RouteParts extends TransportParts {
  readonly auth: AuthStages;
  /** Acquires the counts of the route with this name. */
  readonly acquireTraffic: (name: string) => RouteTraffic;
  readonly protectionOf: ProtectionOf;
  readonly compression: Compression;
  /** Whether the responses of this service of the process are compressed if its mapping does not say. */
  readonly compressesService: (name: string) => boolean;
  /** The domain of the rate-limit service. Undefined when there is none. */
  readonly domain: string | undefined;
}

/** Throws TypeError for a service or an auth service that does not exist. */
export function createRoute(mapping: Mapping, parts: RouteParts): Route {
  const traffic = parts.acquireTraffic(mapping.name);
  const rule = ruleOf(mapping);
  const { editResponse } = rule;
  const transport = createTransport(mapping, { counts: traffic.upstream, editResponse }, parts);
  const calls = callsService(mapping);
  const labels = calls && parts.domain !== undefined ? (mapping.labels[parts.domain] ?? none) : none;
  const auth = calls ? parts.auth.of(mapping) : undefined;
  const compression = calls ? compressionOf(mapping, transport.origins === undefined, parts) : undefined;
  return Object.freeze({
    ...rule,
    compression,
    changesResponse: compression !== undefined || editResponse !== undefined,
    mapping,
    service: transport.origins === undefined ? mapping.service : authorityOf(mapping.service),
    source: mapping.source,
    auth,
    protection: parts.protectionOf({ mapping, auth, labels }),
    descriptors:
      labels.length === 0 ? noDescriptors : createRouteDescriptors(labels, mapping.service, ignoresCase(mapping)),
    labels,
    transport,
    traffic,
  });
}

/** A service over HTTP may compress its responses itself, so its mapping has to say that the gateway does. */
function compressionOf(
  { service, compress, compressWithCookies: withCookies }: Route['mapping'],
  isOwn: boolean,
  { compression, compressesService }: CompressionParts,
): CompressionRule | undefined {
  const isCompressed = compress ?? (isOwn && compressesService(service));
  return isCompressed ? compression.createRule({ isOwn, withCookies }) : undefined;
}

type CompressionParts = Pick<RouteParts, 'compression' | 'compressesService'>;

/**
 * Also true for a regex that starts with `(?i)`, which the remedy for `case_sensitive: false` with a regex recommends.
 */
function ignoresCase(mapping: Mapping): boolean {
  return foldsCase(mapping) || (mapping.prefixMatch === 'regex' && /^\^?\(\?[a-zA-Z]*i/.test(mapping.prefix));
}

/** Authentication fails closed here: the gateway's own pages must not become public when an auth service fails. */
export function createInternalRoute(
  internal: InternalRoute,
  parts: Pick<RouteParts, 'auth' | 'acquireTraffic' | 'protectionOf'> & CompressionParts,
): Route {
  const { name, forAdmins, run, isLongLived = false, ...rule } = internal;
  const mapping = { ...mappingDefaults, rewrite: '', ...rule, name, service: name };
  const auth = forAdmins ? parts.auth.of(mapping, { forAdmins }) : undefined;
  const compression = compressionOf(mapping, true, parts);
  return Object.freeze({
    ...ruleOf(mapping),
    compression,
    changesResponse: compression !== undefined,
    internal: true,
    mapping,
    service: name,
    source: undefined,
    auth,
    protection: parts.protectionOf({ mapping, auth, labels: none }),
    descriptors: noDescriptors,
    labels: none,
    transport: inProcess(mapping, run),
    traffic: isLongLived ? createRouteTraffic(name) : parts.acquireTraffic(name),
  });
}

/** The fields that mappings and built-in routes have in common. */
function ruleOf(mapping: Route['mapping']) {
  const { name, prefix, prefixMatch, caseSensitive, host, method, headers, queryParameters } = mapping;
  const { precedence, weight, shadow, sticky, gatewayRoute, cors, responseHeaders } = mapping;
  return {
    name,
    prefix,
    prefixMatch,
    caseSensitive,
    host,
    method,
    headers,
    queryParameters,
    precedence,
    weight,
    shadow,
    sticky,
    gatewayRoute,
    conditions: () => describeConditions(mapping),
    cors: cors && createCors(cors, mapping),
    addressFault: createAddressFault(mapping, {
      allow: `allow_addresses of Mapping ${name}`,
      deny: `deny_addresses of Mapping ${name}`,
    }),
    editResponse: createHeaderRules(responseHeaders)?.editResponse,
  };
}

const none: readonly LabelGroup[] = Object.freeze([]);
const noDescriptors: RouteDescriptors = Object.freeze({ beforeAuth: undefined, afterAuth: undefined });
