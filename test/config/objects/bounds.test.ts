/** What the objects of one namespace may cost, and what happens to those beyond it. */
import assert from 'node:assert/strict';
import { type ClusterObject, createObjectAcceptance } from '#config';
import { annotated, resource } from '../../support/kubernetes/cluster-objects.ts';

const mapping = (path: string, spec: object) => resource('Mapping', path, { service: 'orders', ...spec });

function createAcceptance() {
  return createObjectAcceptance({
    gatewayDomain: 'gateway.local',
    trusted: ['frontdesk'],
    directory: '.',
    strictPaths: true,
    findUnservable: () => [],
  });
}

async function accept(objects: readonly ClusterObject[], acceptance = createAcceptance()) {
  const { records, verdicts } = await acceptance.accept(objects);
  return {
    states: verdicts.map(({ state }) => state),
    errors: verdicts.flatMap(({ errors }) => errors.map(({ message, remedy }) => `${message}. ${remedy}`)),
    routes: records.mappings.map(({ prefix, refusal }) => (refusal === undefined ? prefix : `${prefix} refused`)),
  };
}

function recordText(fields: object): string {
  return JSON.stringify({ apiVersion: 'gateway/v1', kind: 'Mapping', name: 'long', service: 'orders', ...fields });
}

describe('an annotation', () => {
  const text = recordText({ prefix: '/long' });

  it('may have 65,536 characters', async () => {
    const { states, routes } = await accept([annotated('shop/long', text.padEnd(65_536))]);
    assert.deepEqual([states, routes], [['accepted'], ['/long']]);
  });

  it('that is longer is refused unread, and closes what could let its requests through', async () => {
    const open = mapping('shop/open', { prefix: '/open', bypass_auth: true });
    const guarded = mapping('shop/guarded', { prefix: '/guarded' });
    const { states, errors, routes } = await accept([annotated('shop/long', text.padEnd(65_537)), open, guarded]);
    assert.deepEqual(states, ['refused', 'accepted', 'accepted']);
    assert.deepEqual(errors, [
      'the annotation has 65537 characters, and at most 65536 are read. Split it over several Services.',
    ]);
    assert.deepEqual(routes, ['/open refused', '/guarded']);
  });

  it('that becomes longer keeps its last valid version', async () => {
    const acceptance = createAcceptance();
    await accept([annotated('shop/long', text)], acceptance);
    const { states, routes } = await accept([annotated('shop/long', text.padEnd(65_537))], acceptance);
    assert.deepEqual([states, routes], [['last-valid'], ['/long']]);
  });

  it('that is longer and may have an AuthService closes what needs one', async () => {
    const auth = '{apiVersion: gateway/v1, kind: AuthService, name: auth, auth_service: "frontdesk:auth"}';
    const orders = mapping('shop/orders', { prefix: '/orders' });
    const { routes } = await accept([annotated('frontdesk/auth', auth.padEnd(65_537)), orders]);
    assert.deepEqual(routes, ['/orders refused']);
  });
});
