/** Why a valid Mapping has to answer 503: an object without a valid version may guard its requests. */
import type { Mapping } from '../records/mapping.ts';
import type { Guards } from './guards.ts';
import { type ClusterObject, nameOfObject } from './object.ts';
import type { ObjectPart } from './read-object.ts';

/** Which objects without a valid version may guard what: the name of the oldest one, of a namespace or of all. */
export interface AllGuards {
  /** Of the trusted namespaces. */
  readonly mayAuthenticate: string | undefined;
  /** The namespaces with an AuthService that does not count. */
  readonly withAuthService: ReadonlyMap<string, string>;
  readonly mayGuardAll: string | undefined;
  /** By the domain of RateLimitServices of the trusted namespaces that reject what they cannot count. Undefined for any. */
  readonly limits: ReadonlyMap<string | undefined, string>;
  readonly withUnknownMatch: ReadonlyMap<string, string>;
  readonly withOtherGuard: ReadonlyMap<string, string>;
}

/** `refused`: the objects without a valid version, the oldest first. */
export function guardsOf(refused: readonly ObjectPart[], trusted: readonly string[]): AllGuards {
  const having = (isSo: (guards: Guards) => boolean) => {
    const found = refused.filter((part) => isSo(part.guards())).map(({ object }) => object);
    return new Map(found.reverse().map((object) => [object.namespace, nameOfObject(object)]));
  };
  const oldestOf = (names: ReadonlyMap<string, string>) => trusted.flatMap((one) => names.get(one) ?? [])[0];
  const withOtherGuard = having(({ mayGuardAll }) => mayGuardAll);
  const withAuth = having(({ mayAuthenticate }) => mayAuthenticate);
  return {
    mayAuthenticate: oldestOf(withAuth),
    withAuthService: having(({ hasAuthService }) => hasAuthService),
    mayGuardAll: oldestOf(withOtherGuard),
    limits: new Map(
      refused
        .filter(({ object }) => trusted.includes(object.namespace))
        .flatMap(({ object, guards }) =>
          guards().deniedDomains.map((domain) => [domain, nameOfObject(object)] as const),
        ),
    ),
    withUnknownMatch: having(({ hasUnknownMatch }) => hasUnknownMatch),
    withOtherGuard,
  };
}

/** Returns why a valid Mapping has to answer 503, if it has. */
export function refusalOf(
  { refusal, redirect, bypassAuth, authService, labels }: Mapping,
  { namespace }: ClusterObject,
  guards: AllGuards,
  { hasDefault, hasLimiter }: { readonly hasDefault: boolean; readonly hasLimiter: boolean },
): string | undefined {
  if (refusal !== undefined) return undefined;
  const guard = guards.mayGuardAll ?? guards.withOtherGuard.get(namespace);
  if (guard !== undefined) return `${guard} is refused, which may protect its requests`;
  const unknown = bypassAuth ? guards.withUnknownMatch.get(namespace) : undefined;
  if (unknown !== undefined) return `${unknown} is refused, and what it matches cannot be read`;
  const limiter = hasLimiter ? undefined : limiterOf(Object.keys(labels), guards.limits);
  if (limiter !== undefined) return `${limiter} is refused, which would limit its requests`;
  const needsDefault = !bypassAuth && authService === undefined && redirect === undefined;
  if (!needsDefault || hasDefault) return undefined;
  const service = guards.mayAuthenticate ?? guards.withAuthService.get(namespace);
  return service && `${service} is refused, and there is no other AuthService`;
}

function limiterOf(domains: readonly string[], limits: AllGuards['limits']): string | undefined {
  const names = domains.map((domain) => limits.get(domain) ?? limits.get(undefined));
  return names.find((name) => name !== undefined);
}
