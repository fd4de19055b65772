/** A mapping made ready for requests. */
import assert from 'node:assert/strict';
import type { Redirect } from '#config';
import { createTraffic, type Target } from '#gateway';
import { silentLogger } from '#http';
import { createClusters } from '#proxy';
import { createAuthStages } from '../../src/gateway/auth/stage.ts';
import { createIdentity } from '../../src/gateway/identity.ts';
import { createInternalRoute, createRoute, type RouteParts } from '../../src/gateway/route.ts';
import { authRecordOf, labelled, mappingOf } from '../support/edge.ts';

const remote: Target = { kind: 'remote', origins: () => ['http://hotel:80'], path: '' };
const local: Target = { kind: 'local', name: 'hotel' };

describe('a route', () => {
  const clusters = createClusters();
  const logger = silentLogger;

  after(() => clusters.close());

  const auth = createAuthStages([{ record: authRecordOf(), port: () => assert.fail('asked') }], {
    resolve: () => local,
    holdCluster: () => assert.fail('opened'),
    counts: { allowed: 0, denied: 0, error: 0 },
    onUnanswered() {},
    logger,
  });

  const partsOf = (target: Target, changes: Partial<RouteParts> = {}): RouteParts => ({
    resolve: () => target,
    appOf: () => async () => {},
    auth,
    holdCluster: (spec) => clusters.acquire(spec).cluster,
    holdTraffic: createTraffic().hold,
    identity: createIdentity([]),
    domain: 'gateway',
    ...{ timeoutMs: 3000, connectTimeoutMs: 2000, idleTimeoutMs: 1000, bodyBytesMax: 1000, logger },
    ...changes,
  });

  it('takes its time limits from the mapping, or else from the settings, and has none in this process', () => {
    const timeoutsOf = (fields: object, target: Target) =>
      createRoute(mappingOf(fields), partsOf(target)).transport.timeouts;
    const settings = { timeoutMs: 3000, connectTimeoutMs: 2000, idleTimeoutMs: 1000 };
    const own = { timeoutMs: 50, connectTimeoutMs: 40, idleTimeoutMs: 0 };
    assert.deepEqual(timeoutsOf({}, remote), settings);
    assert.deepEqual(timeoutsOf(own, remote), own);
    assert.deepEqual(timeoutsOf(own, local), undefined);
  });

  it('that is a redirect asks no service, and resolves none', () => {
    const redirect: Redirect = { host: 'new.example', path: undefined, status: 301 };
    const mapping = mappingOf({ redirect, labels: { gateway: labelled('x-key') }, service: 'nowhere' });
    const route = createRoute(mapping, partsOf(remote, { resolve: () => assert.fail('resolved') }));
    assert.deepEqual([route.auth, route.labels, route.transport.timeouts], [undefined, [], undefined]);
    assert.equal(route.transport.describe(), 'redirect (301)');
  });

  it('that gets copies cannot lead to a service in this process', () => {
    const make = () => createRoute(mappingOf({ shadow: true }), partsOf(local));
    assert.throws(make, /^TypeError: Mapping hotel: .*"hotel" is in this process/);
  });

  it('of the server has no record, no labels and no time limit, and runs its app as it is', () => {
    const run = async () => {};
    const internal = { name: 'diag', prefix: '/gateway/v0/diag', rewrite: '', authenticated: true, run };
    const route = createInternalRoute(internal, partsOf(local));
    assert.equal(route.transport.forward, run);
    assert.equal(route.auth?.record.name, 'auth');
    assert.deepEqual([route.source, route.labels, route.transport.timeouts], [undefined, [], undefined]);
    assert.equal(route.transport.describe(), 'in this process');
    assert.equal(createInternalRoute({ ...internal, authenticated: false }, partsOf(local)).auth, undefined);
  });
});
