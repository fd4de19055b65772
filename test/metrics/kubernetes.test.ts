/** The metrics of a Kubernetes cluster that the records come from, and none without one. */
import assert from 'node:assert/strict';
import type { KubernetesState } from '#kubernetes';
import { createMainThreadMetrics, createMetrics } from '#metrics';
import { parts } from './metrics-parts.ts';

const state: KubernetesState = {
  namespace: 'edge',
  namespaces: [],
  resources: ['services'],
  isRead: true,
  answeredAtMs: parts.clock() - 20_000,
  deliveries: 3,
  readFailures: 4,
  unread: [{ resource: 'ingresses', message: 'forbidden', sinceMs: 1_700_000_000_000 }],
  objects: { accepted: 5, lastValid: 6, refused: 7 },
  unserved: { GatewayClass: 0, Gateway: 1, HTTPRoute: 13, GRPCRoute: 0 },
  writes: { statuses: { succeeded: 8, failed: 9 }, events: { succeeded: 10, failed: 11 }, waiting: 12 },
};

const partsWith = (kubernetes: () => KubernetesState | undefined) => ({
  ...parts,
  configuration: { ...parts.configuration, kubernetes },
});

async function linesOf({ read }: ReturnType<typeof createMetrics>) {
  const { text } = await read();
  return text.split('\n').filter((line) => line.startsWith('frontdesk_kubernetes_'));
}

const expected = [
  'frontdesk_kubernetes_read 1',
  'frontdesk_kubernetes_objects{state="accepted"} 5',
  'frontdesk_kubernetes_objects{state="last_valid"} 6',
  'frontdesk_kubernetes_objects{state="refused"} 7',
  'frontdesk_kubernetes_unserved{kind="GatewayClass"} 0',
  'frontdesk_kubernetes_unserved{kind="Gateway"} 1',
  'frontdesk_kubernetes_unserved{kind="HTTPRoute"} 13',
  'frontdesk_kubernetes_unserved{kind="GRPCRoute"} 0',
  'frontdesk_kubernetes_unread_since_timestamp_seconds{resource="ingresses"} 1700000000',
  'frontdesk_kubernetes_answer_age_seconds 20',
  'frontdesk_kubernetes_deliveries_total 3',
  'frontdesk_kubernetes_read_failures_total 4',
  'frontdesk_kubernetes_writes_total{kind="status",result="success"} 8',
  'frontdesk_kubernetes_writes_total{kind="status",result="error"} 9',
  'frontdesk_kubernetes_writes_total{kind="event",result="success"} 10',
  'frontdesk_kubernetes_writes_total{kind="event",result="error"} 11',
  'frontdesk_kubernetes_writes_waiting 12',
];

describe('the metrics of a cluster', () => {
  it('say what was read and written, in a process with one thread and in the main thread of several', async () => {
    const given = partsWith(() => state);
    assert.deepEqual(await linesOf(createMetrics(given)), expected);
    assert.deepEqual(await linesOf(createMainThreadMetrics({ ...given, threads: () => 2 })), expected);
  });

  it('have no age before the first answer', async () => {
    const lines = await linesOf(createMetrics(partsWith(() => ({ ...state, isRead: false, answeredAtMs: undefined }))));
    assert.ok(lines.includes('frontdesk_kubernetes_read 0'));
    assert.ok(!lines.some((line) => line.includes('_age_')));
  });

  it('say nothing about the Gateway API where it is not read', async () => {
    const lines = await linesOf(createMetrics(partsWith(() => ({ ...state, unserved: undefined }))));
    assert.ok(!lines.some((line) => line.includes('_unserved')));
  });

  it('have no series if the records come from files', async () => {
    assert.deepEqual(await linesOf(createMetrics(parts)), []);
  });
});
