/** What `check_ready` says about a Kubernetes cluster and about refused objects, without names and places. */
import assert from 'node:assert/strict';
import type { KubernetesState } from '#kubernetes';
import { createReadiness, unreadFault } from '../../src/server/internal-routes.ts';

const sinceMs = Date.UTC(2026, 0, 2, 3, 4, 5);
const unread = { resource: 'services in the namespace shop', message: 'forbidden', sinceMs };
const state: KubernetesState = {
  namespace: 'edge',
  namespaces: [],
  resources: ['services'],
  isRead: true,
  answeredAtMs: sinceMs,
  deliveries: 1,
  readFailures: 0,
  unread: [],
  objects: { accepted: 1, lastValid: 0, refused: 0 },
  unserved: undefined,
  writes: { statuses: { succeeded: 0, failed: 0 }, events: { succeeded: 0, failed: 0 }, waiting: 0 },
};

const refusedObject = (name: string, atMs: number) => {
  const error = { source: { file: name, line: 0 }, message: 'prefix is missing', remedy: 'prefix: /v1' };
  return { part: 'records' as const, object: name, consequence: 'it stays', errors: [error], sinceMs: atMs };
};

function readiness(kubernetes: KubernetesState | undefined, refused: ReturnType<typeof refusedObject>[] = []) {
  const reports = { fault: async () => unreadFault(kubernetes), kubernetes: async () => kubernetes };
  return createReadiness(reports, { refused: () => refused })();
}

describe('check_ready', () => {
  it('is 503 until the cluster was read for the first time', async () => {
    const detail = 'The records of the cluster have not been read yet.';
    await assert.rejects(readiness({ ...state, isRead: false }), { slug: 'not-ready', detail });
  });

  it('is 503 while the cluster has never been read, and leaves the cause to the log', async () => {
    const detail = 'The records of the cluster cannot be read. The log says why.';
    await assert.rejects(readiness({ ...state, isRead: false, unread: [unread] }), { slug: 'not-ready', detail });
  });

  it('is 200 while the cluster is away, if it was read before, and says since when', async () => {
    const later = { ...unread, resource: 'ingresses', sinceMs: sinceMs + 60_000 };
    assert.deepEqual(await readiness({ ...state, unread: [later, unread] }), {
      status: 'ready',
      unread: { resources: 2, since: '2026-01-02T03:04:05.000Z' },
    });
  });

  it('counts the errors of all refused objects together', async () => {
    const refused = [refusedObject('Mapping shop/b', sinceMs + 1_000), refusedObject('Mapping shop/a', sinceMs)];
    assert.deepEqual(await readiness(state, refused), {
      status: 'ready',
      refused: [{ part: 'records', since: '2026-01-02T03:04:05.000Z', errors: 2 }],
    });
  });

  it('says no more if all is well, or if the records come from files', async () => {
    assert.deepEqual(await readiness(state), { status: 'ready' });
    assert.deepEqual(await readiness(undefined), { status: 'ready' });
  });
});
