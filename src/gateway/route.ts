/** A mapping made ready: everything about it that a request needs, worked out once. */
import type { Dispatcher } from 'undici';
import type { LabelGroup, Mapping, Source } from '#config';
import { createLocalForward, type Forward } from './forward-local.ts';
import { createRemoteForward } from './forward-remote.ts';
import type { Identity } from './identity.ts';
import { createDescribe, type Describe } from './labels.ts';
import { describeTarget, type Target } from './target.ts';

export interface Route {
  readonly name: string;
  readonly prefix: string;
  readonly rewrite: string;
  readonly service: string;
  /** For people: where its requests go. */
  readonly target: () => string;
  readonly authenticated: boolean;
  /** Undefined when no label of the rate-limit service's domain is on it. */
  readonly describe: Describe | undefined;
  readonly labels: readonly LabelGroup[];
  readonly timeoutMs: number | undefined;
  readonly forward: Forward;
  /** Where its record stands; undefined for the routes that the server brings itself. */
  readonly source: Source | undefined;
}

/** A route of the server's own: an app of this process that no record names. */
export interface InternalRoute {
  readonly name: string;
  readonly prefix: string;
  /** True: only behind the auth service. Without an auth service such a route is not served at all. */
  readonly authenticated: boolean;
  /** As a mapping's; `''` leaves the path alone. */
  readonly rewrite: string;
  readonly run: Forward;
}

export interface RouteParts {
  readonly resolve: (service: string) => Target;
  /** The isolated app of a module in this process. */
  readonly local: (name: string) => Forward;
  readonly dispatcher: (connectTimeoutMs: number) => Dispatcher;
  readonly identity: Identity;
  readonly domain: string | undefined;
  /** False without an auth service: then nothing is authenticated. */
  readonly authenticates: boolean;
  readonly timeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly bodyBytesMax: number;
}

export function routeOfMapping(mapping: Mapping, parts: RouteParts): Route {
  const { name, prefix, rewrite, service, source } = mapping;
  const target = parts.resolve(service);
  const labels = parts.domain === undefined ? [] : (mapping.labels[parts.domain] ?? []);
  return Object.freeze({
    name,
    prefix,
    rewrite,
    service,
    target: () => describeTarget(target),
    authenticated: parts.authenticates && !mapping.bypassAuth,
    describe: labels.length === 0 ? undefined : createDescribe(labels),
    labels,
    timeoutMs: target.kind === 'local' ? undefined : (mapping.timeoutMs ?? parts.timeoutMs),
    forward: forwardTo(target, mapping, parts),
    source,
  });
}

export function routeOfInternal({ name, prefix, rewrite, authenticated, run }: InternalRoute): Route {
  return Object.freeze({
    name,
    prefix,
    rewrite,
    service: name,
    target: () => describeTarget({ kind: 'local', name }),
    authenticated,
    describe: undefined,
    labels: [],
    timeoutMs: undefined,
    forward: createLocalForward({ prefix, rewrite }, run),
    source: undefined,
  });
}

function forwardTo(target: Target, rule: Mapping, parts: RouteParts): Forward {
  if (target.kind === 'local') return createLocalForward(rule, parts.local(target.name));
  return createRemoteForward({
    rule,
    origin: target.origin,
    path: target.path,
    dispatcher: parts.dispatcher(rule.connectTimeoutMs ?? parts.connectTimeoutMs),
    timeoutMs: rule.timeoutMs ?? parts.timeoutMs,
    bodyBytesMax: parts.bodyBytesMax,
    identity: parts.identity,
  });
}
