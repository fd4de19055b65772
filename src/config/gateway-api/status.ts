/** What frontdesk has to say in the status of an object of the Gateway API. Plain data, without times. */
import type { Fault } from '../errors.ts';
import { type ClusterObject, generationOf } from '../objects/object.ts';

/** The status that an object is to have. */
export interface DesiredStatus {
  readonly object: ClusterObject;
  readonly status: GatewayClassStatus | GatewayStatus | RouteStatus;
}

export interface Condition {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
  /** The generation of the object that was read. */
  readonly observedGeneration: number;
}

export interface GatewayClassStatus {
  readonly kind: 'GatewayClass';
  readonly conditions: readonly Condition[];
  readonly supportedFeatures: readonly { readonly name: string }[];
}

export interface GatewayStatus {
  readonly kind: 'Gateway';
  readonly addresses: readonly { readonly type: 'IPAddress' | 'Hostname'; readonly value: string }[];
  readonly conditions: readonly Condition[];
  readonly listeners: readonly ListenerStatus[];
}

export interface ListenerStatus {
  readonly name: string;
  readonly supportedKinds: readonly { readonly group: string; readonly kind: string }[];
  readonly attachedRoutes: number;
  readonly conditions: readonly Condition[];
}

export interface RouteStatus {
  readonly kind: 'Route';
  /** Those of frontdesk. Others belong to their controllers. */
  readonly parents: readonly ParentStatus[];
}

export interface ParentStatus {
  /** As in the spec of the route. */
  readonly parentRef: object;
  readonly controllerName: string;
  readonly conditions: readonly Condition[];
}

/** Why a condition does not hold, or holds in part. `reason` is one of the Gateway API's where it has one. */
export interface Problem extends Fault {
  readonly reason: string;
}

/** The condition holds if there is no problem. Its reason is then its type, as for most in the Gateway API. */
export function conditionOf(object: ClusterObject, type: string, problem: Problem | undefined): Condition {
  const observedGeneration = generationOf(object) ?? 0;
  if (problem === undefined) return { type, status: 'True', reason: type, message: '', observedGeneration };
  return { type, status: 'False', reason: problem.reason, message: sentencesOf(problem), observedGeneration };
}

/** A message that begins with a word begins with a capital letter, and one that begins with the name of a field does not. */
function sentencesOf({ message, remedy }: Fault): string {
  return `${message.replace(/^[a-z]+(?=[ :])/, (word) => word.charAt(0).toUpperCase() + word.slice(1))}. ${remedy}`;
}
