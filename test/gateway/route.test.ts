/** A mapping made ready, as the diagnostics read it. */
import assert from 'node:assert/strict';
import { Agent } from 'undici';
import type { Target } from '#gateway';
import { createIdentity } from '../../src/gateway/identity.ts';
import { type RouteParts, routeOfInternal, routeOfMapping } from '../../src/gateway/route.ts';
import { labelled, mappingOf } from '../support/edge.ts';

const away: Target = { kind: 'remote', origin: () => 'http://hotel:80', path: '' };
const beside: Target = { kind: 'local', name: 'hotel' };

describe('a route', () => {
  const connectTimeouts: number[] = [];
  const agent = new Agent();

  const partsOf = (target: Target, changes: Partial<RouteParts> = {}): RouteParts => ({
    resolve: () => target,
    local: () => async () => {},
    dispatcher(connectTimeoutMs) {
      connectTimeouts.push(connectTimeoutMs);
      return agent;
    },
    identity: createIdentity([]),
    domain: 'gateway',
    authenticates: true,
    timeoutMs: 3000,
    connectTimeoutMs: 2000,
    bodyBytesMax: 1000,
    ...changes,
  });

  afterEach(() => connectTimeouts.splice(0));

  it('says where it leads', () => {
    assert.equal(routeOfMapping(mappingOf(), partsOf(away)).target(), 'http://hotel:80');
    assert.equal(routeOfMapping(mappingOf(), partsOf(beside)).target(), 'in this process');
  });

  it('takes its time limits from the mapping, or else from the settings', () => {
    assert.equal(routeOfMapping(mappingOf(), partsOf(away)).timeoutMs, 3000);
    assert.equal(routeOfMapping(mappingOf({ timeoutMs: 50, connectTimeoutMs: 40 }), partsOf(away)).timeoutMs, 50);
    assert.deepEqual(connectTimeouts, [2000, 40]);
  });

  it('has no time limit in this process', () => {
    assert.equal(routeOfMapping(mappingOf({ timeoutMs: 50 }), partsOf(beside)).timeoutMs, undefined);
  });

  it('is authenticated unless the mapping bypasses that, or there is no auth service', () => {
    assert.equal(routeOfMapping(mappingOf(), partsOf(beside)).authenticated, true);
    assert.equal(routeOfMapping(mappingOf({ bypassAuth: true }), partsOf(beside)).authenticated, false);
    assert.equal(routeOfMapping(mappingOf(), partsOf(beside, { authenticates: false })).authenticated, false);
  });

  it('has labels of the rate-limit service domain alone', () => {
    const mapping = mappingOf({ labels: { gateway: labelled('x-key'), other: labelled('x-other') } });
    const route = routeOfMapping(mapping, partsOf(beside));
    assert.deepEqual(route.labels, labelled('x-key'));
    assert.deepEqual(route.describe?.({ 'x-key': 'a', 'x-other': 'b' }), [{ entries: [{ key: 'x-key', value: 'a' }] }]);
    for (const domain of ['another', undefined]) {
      const without = routeOfMapping(mapping, partsOf(beside, { domain }));
      assert.equal(without.describe, undefined);
      assert.deepEqual(without.labels, []);
    }
  });

  it('of the server itself has no record, no labels and no time limit', () => {
    const run = async () => {};
    const route = routeOfInternal({ name: 'diag', prefix: '/gateway/v0/diag', rewrite: '', authenticated: true, run });
    assert.equal(route.forward, run);
    assert.equal(route.authenticated, true);
    assert.equal(route.source, undefined);
    assert.equal(route.describe, undefined);
    assert.equal(route.timeoutMs, undefined);
    assert.equal(route.target(), 'in this process');
  });
});
