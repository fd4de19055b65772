/** A mapping made ready, as the diagnostics read it. */
import assert from 'node:assert/strict';
import type { Redirect } from '#config';
import { createTraffic, type Facts, type Target } from '#gateway';
import { silentLogger } from '#http';
import { createClusters } from '#proxy';
import { createAuthStages } from '../../src/gateway/auth-services.ts';
import { createGatewayCounts } from '../../src/gateway/gateway.ts';
import { createHoldings } from '../../src/gateway/holdings.ts';
import { createIdentity } from '../../src/gateway/identity.ts';
import { type RouteParts, routeOfInternal, routeOfMapping } from '../../src/gateway/route.ts';
import { authRecordOf, labelled, mappingOf } from '../support/edge.ts';

const away: Target = { kind: 'remote', origins: () => ['http://hotel:80'], path: '' };
const beside: Target = { kind: 'local', name: 'hotel' };

const facts: Facts = { method: 'GET', path: '/v1/hotels/x', search: '?y', host: 'h', client: '::1', headers: {} };

describe('a route', () => {
  const clusters = createClusters();
  const holdings = createHoldings(clusters, createTraffic());
  const logger = silentLogger;

  const stagesOf = (...names: string[]) =>
    createAuthStages(
      names.map((name, index) => ({
        record: authRecordOf({ name, isDefault: index === 0 }),
        port: () => assert.fail('asked'),
      })),
      { resolve: () => beside, holdings, counts: createGatewayCounts().auth, onSilence() {}, logger },
    );

  const partsOf = (target: Target, changes: Partial<RouteParts> = {}): RouteParts => ({
    resolve: () => target,
    local: () => async () => {},
    auth: stagesOf('auth', 'staff'),
    holdings,
    identity: createIdentity([]),
    domain: 'gateway',
    timeoutMs: 3000,
    connectTimeoutMs: 2000,
    idleTimeoutMs: 1000,
    bodyBytesMax: 1000,
    logger,
    ...changes,
  });

  after(() => {
    holdings.release();
    return clusters.close();
  });

  it('says where it leads', () => {
    assert.equal(routeOfMapping(mappingOf(), partsOf(away)).target(), 'http://hotel:80');
    assert.equal(routeOfMapping(mappingOf(), partsOf(beside)).target(), 'in this process');
  });

  const timeoutsOf = (fields: object, target: Target) => {
    const { timeoutMs, connectTimeoutMs, idleTimeoutMs } = routeOfMapping(mappingOf(fields), partsOf(target));
    return [timeoutMs, connectTimeoutMs, idleTimeoutMs];
  };

  it('takes its time limits from the mapping, or else from the settings', () => {
    assert.deepEqual(timeoutsOf({}, away), [3000, 2000, 1000]);
    assert.deepEqual(timeoutsOf({ timeoutMs: 50, connectTimeoutMs: 40, idleTimeoutMs: 0 }, away), [50, 40, 0]);
  });

  it('has no time limit in this process', () => {
    assert.deepEqual(timeoutsOf({ timeoutMs: 50 }, beside), [undefined, undefined, undefined]);
  });

  it('asks the auth service that the mapping names, or the usual one, unless the mapping bypasses that or there is none', () => {
    const askedBy = (fields: object, changes: Partial<RouteParts> = {}) =>
      routeOfMapping(mappingOf(fields), partsOf(beside, changes)).auth?.name;
    assert.equal(askedBy({}), 'auth');
    assert.equal(askedBy({ authService: 'staff' }), 'staff');
    assert.equal(askedBy({ bypassAuth: true }), undefined);
    assert.equal(askedBy({}, { auth: stagesOf() }), undefined);
  });

  it('is not made when the auth service that the mapping names is not there', () => {
    for (const auth of [stagesOf(), stagesOf('auth')]) {
      const make = () => routeOfMapping(mappingOf({ authService: 'staff' }), partsOf(beside, { auth }));
      assert.throws(make, /^TypeError: Mapping hotel: there is no auth service "staff"/);
    }
  });

  it('tells what the auth service is asked, and asks nobody', () => {
    const { auth } = routeOfMapping(mappingOf(), partsOf(beside));
    const headers = { cookie: 'a=1', 'x-other': '1' };
    assert.deepEqual(auth?.question({ ...facts, headers }, ['x-request-id', '1']), {
      method: 'GET',
      path: '/v1/hotels/x?y',
      headers: ['cookie', 'a=1', 'x-request-id', '1'],
    });
  });

  it('has labels of the rate-limit service domain alone', () => {
    const mapping = mappingOf({ labels: { gateway: labelled('x-key'), other: labelled('x-other') } });
    const route = routeOfMapping(mapping, partsOf(beside));
    assert.deepEqual(route.labels, labelled('x-key'));
    const headers = { 'x-key': 'a', 'x-other': 'b' };
    assert.deepEqual(route.describe?.({ ...facts, headers }), [{ entries: [{ key: 'x-key', value: 'a' }] }]);
    for (const domain of ['another', undefined]) {
      const without = routeOfMapping(mapping, partsOf(beside, { domain }));
      assert.equal(without.describe, undefined);
      assert.deepEqual(without.labels, []);
    }
  });

  it('tells the path as its service sees it', () => {
    assert.equal(routeOfMapping(mappingOf(), partsOf(beside)).rewritten('/v1/hotels/x'), '/x');
    assert.equal(routeOfMapping(mappingOf({ rewrite: '/a' }), partsOf(away)).rewritten('/v1/hotels/x'), '/a/x');
  });

  it('that is a redirect asks nobody, calls nobody, and tells where it leads to', () => {
    const redirect: Redirect = { host: 'new.example', path: undefined, status: 301 };
    const mapping = mappingOf({ redirect, labels: { gateway: labelled('x-key') }, service: 'nowhere' });
    const route = routeOfMapping(mapping, partsOf(away, { resolve: () => assert.fail('resolved') }));
    assert.deepEqual([route.auth, route.describe, route.timeoutMs], [undefined, undefined, undefined]);
    assert.equal(route.redirection?.(facts, 'https://gw.example'), 'https://new.example/v1/hotels/x?y');
    assert.equal(route.target(), 'redirect (301)');
  });

  it('that gets copies is not made in this process, where a request has only one answer', () => {
    const make = () => routeOfMapping(mappingOf({ shadow: true }), partsOf(beside));
    assert.throws(make, /^TypeError: Mapping hotel: .*"hotel" is in this process/);
  });

  it('of the server itself has no record, no labels and no time limit', () => {
    const run = async () => {};
    const internal = { name: 'diag', prefix: '/gateway/v0/diag', rewrite: '', authenticated: true, run };
    const route = routeOfInternal(internal, partsOf(beside));
    assert.equal(route.forward, run);
    assert.equal(route.auth?.name, 'auth');
    assert.equal(route.source, undefined);
    assert.equal(route.describe, undefined);
    assert.equal(route.timeoutMs, undefined);
    assert.equal(route.target(), 'in this process');
    assert.equal(routeOfInternal({ ...internal, authenticated: false }, partsOf(beside)).auth, undefined);
  });
});
