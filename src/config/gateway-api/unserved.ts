/** Counts the objects of the Gateway API that are not served, or not as a whole, for alerts. */
import type { ConfigurationError } from '../errors.ts';
import type { ClusterObject } from '../objects/object.ts';
import { isOwnClass } from './gateways.ts';
import type { RouteKind } from './specs.ts';

/** By kind. Refused routes are not among them, because all refused objects are counted together. */
export type UnservedCounts = Readonly<Record<'Gateway' | RouteKind, number>> & {
  /** 1 if no GatewayClass is frontdesk's. */
  readonly GatewayClass: number;
};

/** `notices`: what is wrong with the Gateways and routes, each with the name of its object as its file. */
export function countUnserved(
  objects: readonly ClusterObject[],
  notices: readonly ConfigurationError[],
): UnservedCounts {
  const names = [...new Set(notices.map(({ source }) => source.file))];
  const countOf = (kind: string) => names.filter((name) => name.startsWith(`${kind} `)).length;
  return {
    GatewayClass: objects.some(isOwnClass) ? 0 : 1,
    Gateway: countOf('Gateway'),
    HTTPRoute: countOf('HTTPRoute'),
    GRPCRoute: countOf('GRPCRoute'),
  };
}
