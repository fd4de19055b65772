/** Tests of merging statuses of the Gateway API: what is replaced, what stays, and when nothing is to be written. */
import assert from 'node:assert/strict';
import type { Condition, DesiredStatus } from '#config';
import { statusChange } from '../../../src/kubernetes/reports/merge-status.ts';

const [then, now] = ['2026-01-02T03:04:05Z', '2026-06-07T08:09:10Z'];
const ours = 'gateway.local/gateway-controller';

function condition(type: string, more: Partial<Condition> = {}): Condition {
  return { type, status: 'True', reason: type, message: '', observedGeneration: 2, ...more };
}

const writtenAt = (lastTransitionTime: string, one: Condition) => ({ ...one, lastTransitionTime });
const change = (current: unknown, desired: DesiredStatus['status']) =>
  statusChange(current, desired, Date.parse(now)) as Record<string, unknown> | undefined;

const ofClass = (...conditions: readonly Condition[]): DesiredStatus['status'] => ({
  kind: 'GatewayClass',
  conditions,
  supportedFeatures: [{ name: 'Gateway' }],
});

const parent = (name: string, ...conditions: readonly Condition[]) => ({
  parentRef: { group: 'gateway.networking.k8s.io', kind: 'Gateway', name },
  controllerName: ours,
  conditions,
});
const ofRoute = (...parents: ReturnType<typeof parent>[]): DesiredStatus['status'] => ({ kind: 'Route', parents });
const foreign = {
  ...parent('gate'),
  controllerName: 'example.com/controller',
  conditions: [writtenAt(then, condition('Accepted', { status: 'False' }))],
};

describe('a status of the Gateway API', () => {
  it('gets a condition with the time of the write, if it had none', () => {
    assert.deepEqual(change(undefined, ofClass(condition('Accepted'))), {
      conditions: [writtenAt(now, condition('Accepted'))],
      supportedFeatures: [{ name: 'Gateway' }],
    });
  });

  it('keeps the time of a condition until its status changes', () => {
    const current = { conditions: [writtenAt(then, condition('Accepted'))] };
    const later = condition('Accepted', { message: 'new words', observedGeneration: 3 });
    assert.deepEqual(change(current, ofClass(later))?.['conditions'], [writtenAt(then, later)]);
    const refused = condition('Accepted', { status: 'False' });
    assert.deepEqual(change(current, ofClass(refused))?.['conditions'], [writtenAt(now, refused)]);
  });

  it('keeps the conditions of others where they are, and loses ours that do not hold any more', () => {
    const others = writtenAt(then, condition('example.com/Checked'));
    const current = {
      conditions: [writtenAt(then, condition('Conflicted')), others, writtenAt(then, condition('Accepted'))],
    };
    const changed = change(current, ofClass(condition('Programmed'), condition('Accepted')));
    assert.deepEqual(changed?.['conditions'], [
      others,
      writtenAt(then, condition('Accepted')),
      writtenAt(now, condition('Programmed')),
    ]);
  });

  it('is not written if it says the same, in whatever order of conditions and members', () => {
    const [accepted, programmed] = [condition('Accepted'), condition('Programmed')];
    const { message, ...rest } = writtenAt(then, programmed);
    const current = {
      supportedFeatures: [{ name: 'Gateway' }],
      conditions: [{ message, ...rest }, writtenAt(then, accepted)],
    };
    assert.equal(change(current, ofClass(accepted, programmed)), undefined);
    assert.notEqual(change(current, ofClass(accepted)), undefined);
  });

  it('of a Gateway has its addresses and listeners, whose conditions keep their times', () => {
    const listener = { supportedKinds: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute' }], attachedRoutes: 1 };
    const desired: DesiredStatus['status'] = {
      kind: 'Gateway',
      addresses: [{ type: 'IPAddress', value: '192.0.2.1' }],
      conditions: [],
      listeners: [
        { ...listener, name: 'http', conditions: [condition('Accepted')] },
        { ...listener, name: 'https', conditions: [condition('Accepted')] },
      ],
    };
    const https = { ...listener, name: 'https', conditions: [writtenAt(then, condition('Accepted'))] };
    const current = { listeners: [{ ...https, name: 'gone' }, https], other: 'stays' };
    const changed = change(current, desired);
    assert.deepEqual(changed, {
      addresses: [{ type: 'IPAddress', value: '192.0.2.1' }],
      conditions: [],
      listeners: [{ ...listener, name: 'http', conditions: [writtenAt(now, condition('Accepted'))] }, https],
    });
    assert.equal(change(changed, desired), undefined);
  });

  it('of a route keeps the parents of other controllers, also of the same Gateway, and loses ours that are gone', () => {
    const [gone, gate] = [parent('gone'), parent('gate', condition('Accepted'))];
    const current = { parents: [gone, foreign, { ...gate, conditions: [writtenAt(then, condition('Accepted'))] }] };
    const changed = change(current, ofRoute(parent('new', condition('Accepted')), gate));
    assert.deepEqual(changed?.['parents'], [
      foreign,
      { ...gate, conditions: [writtenAt(then, condition('Accepted'))] },
      { ...parent('new'), conditions: [writtenAt(now, condition('Accepted'))] },
    ]);
    assert.deepEqual(change(current, ofRoute())?.['parents'], [foreign]);
    assert.equal(change({ parents: [foreign] }, ofRoute()), undefined);
    assert.equal(change(undefined, ofRoute()), undefined);
  });

  it('of a route knows its parent without the defaults that the API server adds', () => {
    const written = change(undefined, ofRoute(parent('gate', condition('Accepted'))));
    const desired = { ...parent('gate', condition('Accepted')), parentRef: { name: 'gate' } };
    assert.equal(change(written, { kind: 'Route', parents: [desired] }), undefined);
  });

  it('of a route has at most 32 parents, those of others first', () => {
    const names = Array.from({ length: 31 }, (_, index) => `gate-${index}`);
    const current = { parents: names.map((name) => ({ ...foreign, parentRef: { name } })) };
    const { parents } = change(current, ofRoute(parent('one'), parent('two'))) as { parents: object[] };
    assert.equal(parents.length, 32);
    assert.deepEqual(parents.slice(0, 31), current.parents);
  });
});
