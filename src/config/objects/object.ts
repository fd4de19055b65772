/** An object of a Kubernetes cluster that may contain records, and what became of it. */
import { type ConfigurationError, fileError, valueAt } from '../errors.ts';

export interface ClusterObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  /** Stays the same while the object exists. One that is deleted and created again has another. */
  readonly uid: string;
  /** In ISO 8601. Of two objects that are in conflict, the older one counts. */
  readonly createdAt: string;
  /** The whole object. The same value as before while its annotations and its spec do not change. */
  readonly value: unknown;
}

/** What became of an object with records. */
export interface ObjectVerdict {
  readonly object: ClusterObject;
  /** `last-valid`: it is refused, and its last valid version stays in use. */
  readonly state: 'accepted' | 'last-valid' | 'refused';
  /** Empty if it is accepted. */
  readonly errors: readonly ConfigurationError[];
  readonly notices: readonly ConfigurationError[];
  /** What holds until a refused object is fixed: `its last valid version stays`. Undefined for an accepted one. */
  readonly consequence: string | undefined;
}

/** The name of an object in errors, as people type it: `Mapping shop/orders`. */
export function nameOfObject({ kind, namespace, name }: Pick<ClusterObject, 'kind' | 'namespace' | 'name'>): string {
  return `${kind} ${namespace}/${name}`;
}

/** The error of an object because of which frontdesk itself fails. */
export function unusableError(object: ClusterObject, message: string): ConfigurationError {
  const remedy = 'Undo its last change, and report this: frontdesk should have said before what is wrong with it.';
  return fileError(nameOfObject(object), message, remedy);
}

/** Of two that were created in the same second, the order of their names counts. */
export function byAge(one: ClusterObject, other: ClusterObject): number {
  return compare(ageOf(one), ageOf(other));
}

function ageOf({ createdAt, namespace, name, kind }: ClusterObject): string {
  return [createdAt, namespace, name, kind].join(' ');
}

function compare(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

/** Incremented by the API server with each change of the spec. Undefined for an object that was read without it. */
export function generationOf({ value }: ClusterObject): number | undefined {
  const generation = valueAt(value, ['metadata', 'generation']);
  return typeof generation === 'number' ? generation : undefined;
}
