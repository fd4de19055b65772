/** A mapping made ready: everything that a request needs of it, computed once; the same for the server's own routes. */
import { foldsCase, type LabelGroup, type Mapping, mappingDefaults, type RequestMatch, type Source } from '#config';
import { createHeaderRules, type HeaderEdits } from '#proxy';
import { describeConditions, type Rule } from '#routing';
import type { AuthStage, AuthStages } from './auth/stage.ts';
import { type Cors, createCors } from './cors.ts';
import { createRouteDescriptors, type RouteDescriptors } from './limits/descriptors.ts';
import { authorityOf } from './target.ts';
import { createRouteTraffic, type RouteTraffic } from './traffic/route-traffic.ts';
import {
  createTransport,
  type Handler,
  hasRules,
  inProcess,
  type Transport,
  type TransportParts,
} from './transport.ts';

export interface Route extends Rule {
  /** The record; of a route of the server, what a record for it would say. */
  readonly mapping: Omit<Mapping, 'kind' | 'source'>;
  /** Where it leads, the same for all routes that lead there: `hotel`, `10.0.0.5:9001`. */
  readonly service: string;
  /** The place of the record; undefined for a route of the server. */
  readonly source: Source | undefined;
  /** For people: what it asks of a request besides its prefix, and its share of the requests. */
  readonly conditions: () => readonly string[];
  readonly cors: Cors | undefined;
  /** Undefined: the route is open. */
  readonly auth: AuthStage | undefined;
  readonly descriptors: RouteDescriptors;
  /** The label groups that the descriptors are made of. */
  readonly labels: readonly LabelGroup[];
  readonly transport: Transport;
  /** Applies the mapping's rules for response headers; undefined: it has none. */
  readonly editResponse: HeaderEdits['editResponse'] | undefined;
  /** Counts of its requests, across configurations. */
  readonly traffic: RouteTraffic;
}

/** A route of the server itself: an app of this process that no record names. */
export interface InternalRoute extends Partial<RequestMatch> {
  readonly name: string;
  readonly prefix: string;
  /** True: only for administrators, behind the default auth service; without one the route is not served at all. */
  readonly forAdmins: boolean;
  /** As in a mapping. @default '': the path stays */
  readonly rewrite?: string;
  /** True: its responses last as long as a client watches, so they are left out of the traffic counts. */
  readonly isLongLived?: boolean | undefined;
  /** As in a rule. @default false */
  readonly isBlock?: boolean | undefined;
  readonly run: Handler;
}

export interface RouteParts extends TransportParts {
  readonly auth: AuthStages;
  /** The counts of the route of that name. */
  readonly holdTraffic: (name: string) => RouteTraffic;
  /** The domain of the rate-limit service; undefined without one. */
  readonly domain: string | undefined;
}

/** Throws TypeError for a service or an auth service that is not there. */
export function createRoute(mapping: Mapping, parts: RouteParts): Route {
  const traffic = parts.holdTraffic(mapping.name);
  const transport = createTransport(mapping, traffic.upstream, parts);
  const isRedirect = mapping.redirect !== undefined;
  const labels = isRedirect || parts.domain === undefined ? none : (mapping.labels[parts.domain] ?? none);
  return Object.freeze({
    ...ruleOf(mapping),
    mapping,
    service: transport.origins === undefined ? mapping.service : authorityOf(mapping.service),
    source: mapping.source,
    auth: isRedirect ? undefined : parts.auth.of(mapping),
    descriptors:
      labels.length === 0 ? noDescriptors : createRouteDescriptors(labels, mapping.service, ignoresCase(mapping)),
    labels,
    transport,
    traffic,
  });
}

/** Also by a regex that says so at its start, as the remedy for `case_sensitive: false` beside a regex has it. */
function ignoresCase(mapping: Mapping): boolean {
  return foldsCase(mapping) || (mapping.prefixMatch === 'regex' && /^\^?\(\?[a-zA-Z]*i/.test(mapping.prefix));
}

/** Its authentication fails closed: the gateway's own pages must not open when an auth service fails. */
export function createInternalRoute(internal: InternalRoute, parts: Pick<RouteParts, 'auth' | 'holdTraffic'>): Route {
  const { name, forAdmins, run, isLongLived = false, isBlock, ...rule } = internal;
  const mapping = { ...mappingDefaults, rewrite: '', ...rule, name, service: name };
  return Object.freeze({
    ...ruleOf(mapping),
    internal: true,
    isBlock,
    mapping,
    service: name,
    source: undefined,
    auth: forAdmins ? parts.auth.of(mapping, { forAdmins }) : undefined,
    descriptors: noDescriptors,
    labels: none,
    transport: inProcess(mapping, run),
    traffic: isLongLived ? createRouteTraffic(name) : parts.holdTraffic(name),
  });
}

/** The parts that mappings and routes of the server have in common. */
function ruleOf(mapping: Route['mapping']) {
  const { name, prefix, prefixMatch, caseSensitive, host, method, headers, queryParameters } = mapping;
  const { precedence, weight, shadow, cors, responseHeaders } = mapping;
  return {
    ...{ name, prefix, prefixMatch, caseSensitive, host, method, headers, queryParameters, precedence, weight, shadow },
    conditions: () => describeConditions(mapping),
    cors: cors && createCors(cors),
    editResponse: hasRules(responseHeaders) ? createHeaderRules(responseHeaders).editResponse : undefined,
  };
}

const none: readonly LabelGroup[] = Object.freeze([]);
const noDescriptors: RouteDescriptors = Object.freeze({ beforeAuth: undefined, afterAuth: undefined });
