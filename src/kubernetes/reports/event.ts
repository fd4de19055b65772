/** The Event of an object: one for each fault, under a name that all replicas give it. */
import { createHash } from 'node:crypto';
import type { ClusterObject } from '#config';
import { timeOf } from './status.ts';
import type { VerdictText } from './verdict-text.ts';

export interface ObjectEvent {
  /** The path of all Events of the namespace, and of this one. */
  readonly collection: string;
  readonly path: string;
  readonly body: object;
}

export function eventOf(object: ClusterObject, { isAccepted, reason, note }: VerdictText, nowMs: number): ObjectEvent {
  const { apiVersion, kind, namespace, name, uid } = object;
  const collection = `/api/v1/namespaces/${namespace}/events`;
  const eventName = `${shortened(name)}.${digestOf(uid, reason, note)}`;
  const now = timeOf(nowMs);
  const body = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: eventName, namespace },
    involvedObject: { apiVersion, kind, namespace, name, uid },
    type: isAccepted ? 'Normal' : 'Warning',
    reason,
    message: note,
    count: 1,
    firstTimestamp: now,
    lastTimestamp: now,
    source: { component: 'frontdesk' },
    reportingComponent: 'frontdesk',
    reportingInstance: '',
  };
  return { collection, path: `${collection}/${encodeURIComponent(eventName)}`, body };
}

/** The merge patch of an Event that has happened again. */
export function eventAgain(count: unknown, nowMs: number): object {
  return { count: (typeof count === 'number' ? count : 1) + 1, lastTimestamp: timeOf(nowMs) };
}

/** Names have at most 253 characters, and no part of them may end with a dot or a hyphen. */
function shortened(name: string): string {
  return name.slice(0, 200).replace(/[.-]+$/, '');
}

function digestOf(...parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 16);
}
