/** Metrics of the Kubernetes cluster that the records come from. Without one, they have no series. */
import type { KubernetesState } from '#kubernetes';
import type { Family, Sample } from './registry.ts';

export function createKubernetesFamilies(
  state: () => KubernetesState | undefined,
  clock: () => number,
): readonly Family[] {
  const family = (
    [type, name, ...labels]: readonly [Family['type'], string, ...string[]],
    help: string,
    samplesOf: (state: KubernetesState) => readonly Sample[],
  ): Family => ({
    name: `frontdesk_kubernetes_${name}`,
    type,
    labels,
    help,
    merge: 'first',
    samples: () => {
      const known = state();
      return known === undefined ? [] : samplesOf(known);
    },
  });
  return [
    family(['gauge', 'read'], '1 when everything has been read for the first time, and 0 before.', ({ isRead }) =>
      only(isRead ? 1 : 0),
    ),
    family(
      ['gauge', 'objects', 'state'],
      'Objects with records: `accepted`, refused with their `last_valid` version in use, and `refused` without one.',
      ({ objects: { accepted, lastValid, refused } }) => [
        sample({ state: 'accepted' }, accepted),
        sample({ state: 'last_valid' }, lastValid),
        sample({ state: 'refused' }, refused),
      ],
    ),
    family(
      ['gauge', 'unserved', 'kind'],
      'Objects of the Gateway API that are not served, or not as a whole, except for refused routes. For `GatewayClass`, 1 if none is that of frontdesk.',
      ({ unserved = {} }) => Object.entries(unserved).map(([kind, count]) => sample({ kind }, count)),
    ),
    family(
      ['gauge', 'unread_since_timestamp_seconds', 'resource'],
      'Since when a resource cannot be read, since the epoch. Resources that can be read have no series.',
      ({ unread }) => unread.map(({ resource, sinceMs }) => sample({ resource }, sinceMs / 1000)),
    ),
    family(
      ['gauge', 'answer_age_seconds'],
      'Time since the API server last answered, which it does once a minute if nothing changes. No series before the first answer.',
      ({ answeredAtMs }) => (answeredAtMs === undefined ? [] : only((clock() - answeredAtMs) / 1000)),
    ),
    family(
      ['counter', 'deliveries_total'],
      'Times that objects were taken from the cluster: at the start, and after changes.',
      ({ deliveries }) => only(deliveries),
    ),
    family(['counter', 'read_failures_total'], 'Lists and watches that failed.', ({ readFailures }) =>
      only(readFailures),
    ),
    family(
      ['counter', 'writes_total', 'kind', 'result'],
      'Writes to the cluster, of a `status` or an `event`: `success`, or `error` for each failed attempt.',
      ({ writes: { statuses, events } }) => [
        sample({ kind: 'status', result: 'success' }, statuses.succeeded),
        sample({ kind: 'status', result: 'error' }, statuses.failed),
        sample({ kind: 'event', result: 'success' }, events.succeeded),
        sample({ kind: 'event', result: 'error' }, events.failed),
      ],
    ),
    family(['gauge', 'writes_waiting'], 'Writes that wait for their turn, or for the API server.', ({ writes }) =>
      only(writes.waiting),
    ),
  ];
}

function sample(labels: Sample['labels'], value: number): Sample {
  return { labels, value };
}

function only(value: number): readonly Sample[] {
  return [sample({}, value)];
}
