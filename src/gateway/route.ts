/** A mapping made ready: everything about it that a request needs, worked out once. */
import { foldsCase, type LabelGroup, type Mapping, mappingDefaults, type Redirect, type Source } from '#config';
import type { Logger } from '#http';
import { type Cluster, createHeaderRules, type HeaderEdits, type Shadow } from '#proxy';
import { createRedirection, createRewrite, type Redirection, type Rewrite, type Rule } from '#routing';
import type { AuthStage, AuthStages } from './auth-services.ts';
import { type Cors, createCors } from './cors.ts';
import { createLocalForward, type Forward } from './forward-local.ts';
import { hasRules, withHeaderRules } from './header-stage.ts';
import type { Holdings } from './holdings.ts';
import type { Identity } from './identity.ts';
import { createDescribe, type Describe } from './labels.ts';
import { createRedirect } from './redirect.ts';
import { conditionsOf } from './route-listing.ts';
import { createRouteTraffic, type RouteTraffic } from './route-traffic.ts';
import { describeTarget, type Target } from './target.ts';
import { type Timeouts, untimed, type Way, wayAcross, wayHere } from './way.ts';

/** What a record says, and what follows from it. Its functions ask nobody and change nothing. */
export interface Route extends Rule, Timeouts {
  /** The record itself; of a route that the server brings, what a record of it would say. */
  readonly mapping: Omit<Mapping, 'kind' | 'source'>;
  /** For people: where its requests go. */
  readonly target: () => string;
  /** Shared with the routes that say the same of the same service; undefined in this process, and of a redirect. */
  readonly cluster: Pick<Cluster, 'snapshot'> | undefined;
  /** For people: what it asks of a request beside its prefix, and what part of the requests it gets. */
  readonly conditions: () => readonly string[];
  /** The path as the service sees it, without that of its address; undefined: the request is refused. */
  readonly rewritten: Rewrite;
  /** Of a redirect, its `Location`; undefined: the request is refused. */
  readonly redirection: Redirection | undefined;
  readonly cors: Pick<Cors, 'headersFor'> | undefined;
  /** The auth service that is asked; undefined: nobody is. */
  readonly auth: Pick<AuthStage, 'name' | 'question'> | undefined;
  /** Undefined when no label of the rate-limit service's domain is on it. */
  readonly describe: Describe | undefined;
  /** Of that domain. */
  readonly labels: readonly LabelGroup[];
  /** Where its record stands; undefined for the routes that the server brings itself. */
  readonly source: Source | undefined;
}

/** A route with what requests run through. */
export interface ReadyRoute extends Route {
  readonly cors: Cors | undefined;
  readonly auth: AuthStage | undefined;
  readonly forward: Forward;
  /** What the mapping says of the headers of answers, for those that are not its service's; undefined: nothing. */
  readonly editResponse: HeaderEdits['editResponse'] | undefined;
  /** Of a mapping that gets copies. */
  readonly shadowing: Shadow | undefined;
  /** What came of its requests, across configurations. */
  readonly traffic: RouteTraffic;
}

/** A route of the server's own: an app of this process that no record names. */
export interface InternalRoute extends Partial<Pick<Mapping, 'caseSensitive' | 'precedence'>> {
  readonly name: string;
  readonly prefix: string;
  /** True: only behind the default auth service. Without one such a route is not served at all. */
  readonly authenticated: boolean;
  /** As a mapping's; `''` leaves the path alone. */
  readonly rewrite: string;
  /** True: its answers last for as long as somebody looks on, so that their number and length tell nothing of traffic. */
  readonly isUncounted?: boolean | undefined;
  readonly run: Forward;
}

export interface RouteParts {
  readonly resolve: (service: string) => Target;
  /** The isolated app of a module in this process. */
  readonly local: (name: string) => Forward;
  readonly auth: AuthStages;
  readonly holdings: Holdings;
  readonly identity: Identity;
  /** Undefined: nothing is limited. */
  readonly domain: string | undefined;
  readonly timeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly bodyBytesMax: number;
  readonly logger: Logger;
}

/** Throws TypeError for what a checked record cannot say, as of a service or an auth service that is not there. */
export function routeOfMapping(mapping: Mapping, parts: RouteParts): ReadyRoute {
  if (mapping.redirect !== undefined) return redirectRoute(mapping, mapping.redirect, parts);
  const target = parts.resolve(mapping.service);
  const labels = parts.domain === undefined ? none : (mapping.labels[parts.domain] ?? none);
  const way = target.kind === 'local' ? wayHere(mapping, target.name, parts) : wayAcross(mapping, target, parts);
  return routeOf(mapping, way, {
    source: mapping.source,
    target: () => describeTarget(target),
    auth: parts.auth.of(mapping),
    describe: labels.length === 0 ? undefined : createDescribe(labels, mapping.service, foldsCase(mapping)),
    labels,
  });
}

export function routeOfInternal(internal: InternalRoute, parts: Pick<RouteParts, 'auth' | 'holdings'>): ReadyRoute {
  const { name, authenticated, run, isUncounted = false, ...rule } = internal;
  const mapping = { ...mappingDefaults, ...rule, name, service: name };
  const traffic = isUncounted ? createRouteTraffic(name) : parts.holdings.ofTraffic(name);
  const forward = createLocalForward(mapping, run);
  const way = { ...untimed, cluster: undefined, forward, shadowing: undefined, traffic };
  return routeOf(mapping, way, {
    internal: true,
    source: undefined,
    target: () => describeTarget({ kind: 'local', name }),
    auth: authenticated ? parts.auth.of(mapping) : undefined,
  });
}

function redirectRoute(mapping: Mapping, redirect: Redirect, { holdings }: RouteParts): ReadyRoute {
  const redirection = createRedirection(redirect, mapping);
  const forward = withHeaderRules(mapping, createRedirect(redirection, redirect.status));
  const traffic = holdings.ofTraffic(mapping.name);
  const way = { ...untimed, cluster: undefined, forward, shadowing: undefined, traffic };
  return routeOf(mapping, way, {
    source: mapping.source,
    target: () => `redirect (${redirect.status})`,
    redirection,
  });
}

type Rest = Pick<ReadyRoute, 'source' | 'target'> &
  Partial<Pick<ReadyRoute, 'internal' | 'auth' | 'describe' | 'labels' | 'redirection'>>;

/** Written out: there may be 10,000 of them, and to copy objects is what takes the time. */
function routeOf(mapping: Route['mapping'], way: Way, rest: Rest): ReadyRoute {
  return Object.freeze({
    name: mapping.name,
    prefix: mapping.prefix,
    prefixMatch: mapping.prefixMatch,
    caseSensitive: mapping.caseSensitive,
    host: mapping.host,
    method: mapping.method,
    headers: mapping.headers,
    queryParameters: mapping.queryParameters,
    precedence: mapping.precedence,
    weight: mapping.weight,
    shadow: mapping.shadow,
    internal: rest.internal,
    mapping,
    source: rest.source,
    target: rest.target,
    conditions: () => conditionsOf(mapping),
    rewritten: (path: string) => createRewrite(mapping)(path),
    redirection: rest.redirection,
    cors: mapping.cors && createCors(mapping.cors),
    auth: rest.auth,
    describe: rest.describe,
    labels: rest.labels ?? none,
    timeoutMs: way.timeoutMs,
    connectTimeoutMs: way.connectTimeoutMs,
    idleTimeoutMs: way.idleTimeoutMs,
    cluster: way.cluster,
    forward: way.forward,
    editResponse: hasRules(mapping.responseHeaders)
      ? createHeaderRules(mapping.responseHeaders).editResponse
      : undefined,
    shadowing: way.shadowing,
    traffic: way.traffic,
  });
}

const none: readonly LabelGroup[] = Object.freeze([]);
