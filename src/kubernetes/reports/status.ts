/** The condition `Accepted` in the status of our own kinds: whether an object says it already, and the patch that says it. */
import { type ClusterObject, generationOf, ownGroup, pluralOf } from '#config';
import { isMap } from '#foundation';
import type { VerdictText } from './verdict-text.ts';

const conditionType = 'Accepted';

/** A resource, with its path and the rule that permits to write it. */
export interface StatusPlace {
  readonly path: string;
  /** `mappings/status` */
  readonly resource: string;
  readonly group: string;
}

export function statusPlace({ apiVersion, kind, namespace, name }: ClusterObject): StatusPlace {
  const plural = pluralOf(kind);
  const path = `/apis/${apiVersion}/namespaces/${namespace}/${plural}/${encodeURIComponent(name)}/status`;
  return { path, resource: `${plural}/status`, group: ownGroup };
}

/** The status that the object has in this condition: `True`, `False`, or undefined if it has none yet. */
export function acceptedStatusOf(object: ClusterObject): unknown {
  return conditionOf(object)?.['status'];
}

/** True if the status of the object, as it was read, says this of this generation. */
export function saysAlready(object: ClusterObject, text: VerdictText): boolean {
  const { status, reason, message, observedGeneration } = conditionOf(object) ?? {};
  return (
    status === statusOf(text) &&
    reason === text.reason &&
    message === text.message &&
    observedGeneration === generationOf(object)
  );
}

/** A merge patch, which replaces the list of conditions: those of other types stay as they were read. */
export function statusPatch(object: ClusterObject, text: VerdictText, nowMs: number): object {
  const status = statusOf(text);
  const before = conditionOf(object);
  const now = timeOf(nowMs);
  const observedGeneration = generationOf(object);
  const condition = {
    type: conditionType,
    status,
    reason: text.reason,
    message: text.message,
    ...(observedGeneration !== undefined && { observedGeneration }),
    lastTransitionTime: before?.['status'] === status ? (before['lastTransitionTime'] ?? now) : now,
  };
  const others = conditionsOf(object).filter((one) => one !== before);
  return { status: { conditions: [...others, condition] } };
}

/** A time of the API, which has whole seconds. */
export function timeOf(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+/, '');
}

function statusOf({ isAccepted }: VerdictText): 'True' | 'False' {
  return isAccepted ? 'True' : 'False';
}

function conditionOf(object: ClusterObject) {
  return conditionsOf(object).find(({ type }) => type === conditionType);
}

function conditionsOf({ value }: ClusterObject) {
  const conditions = mapAt(value, 'status')?.['conditions'];
  return Array.isArray(conditions) ? conditions.filter(isMap) : [];
}

function mapAt(value: unknown, name: string) {
  const member = isMap(value) ? value[name] : undefined;
  return isMap(member) ? member : undefined;
}
