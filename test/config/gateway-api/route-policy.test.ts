/** What a RoutePolicy adds to the rules that name it, and what becomes of them without it. */
import assert from 'node:assert/strict';
import type { KubernetesObject } from '../../support/kubernetes/client.ts';
import { httpRoute, policyFilter } from '../../support/kubernetes/gateway-objects.ts';
import { createCluster, edge, orders } from './cluster.ts';

function policy(name: string, spec: object, namespace = 'default'): KubernetesObject {
  return { apiVersion: 'gateway.local/v1', kind: 'RoutePolicy', metadata: { name, namespace }, spec };
}

const routeWith = (filters: readonly object[], rule: object = {}) =>
  httpRoute('shop', [{ filters, backendRefs: [orders], ...rule }]);
const guarded = routeWith([policyFilter('gold')]);

describe('a RoutePolicy', () => {
  it('has fields of a Mapping', async () => {
    const gold = policy('gold', { bypass_auth: true, max_request_bytes: 7, allow_upgrade: ['spdy/3.1'] });
    const { mappings, conditionsOf } = await createCluster()(...edge, gold, guarded);
    assert.deepEqual(
      mappings.map(({ bypassAuth, maxRequestBytes, allowUpgrade }) => ({ bypassAuth, maxRequestBytes, allowUpgrade })),
      [{ bypassAuth: true, maxRequestBytes: 7, allowUpgrade: ['spdy/3.1', 'websocket'] }],
    );
    assert.deepEqual(conditionsOf(guarded), ['edge: Accepted ResolvedRefs']);
  });

  it('decides after those before it, field by field', async () => {
    const route = routeWith(['one', 'two'].map(policyFilter));
    const one = policy('one', { bypass_auth: true, max_request_bytes: 7 });
    const { mappings } = await createCluster()(...edge, one, policy('two', { max_request_bytes: 8 }), route);
    assert.deepEqual(
      mappings.map(({ bypassAuth, maxRequestBytes }) => [bypassAuth, maxRequestBytes]),
      [[true, 8]],
    );
  });

  it('is named beside the fields that it has decided about', async () => {
    const redirect = { type: 'RequestRedirect', requestRedirect: { scheme: 'https' } };
    const filters = ['one', 'two'].map(policyFilter);
    const matches = [{ path: { value: '/old' } }];
    const rules = [{ backendRefs: [orders], filters }, { matches, filters: [...filters, redirect] }, {}];
    const one = policy('one', { bypass_auth: true, max_request_bytes: 7 });
    const two = policy('two', { max_request_bytes: 8, deny_addresses: ['192.0.2.1'] });
    const { mappings } = await createCluster()(...edge, one, two, httpRoute('shop', rules));
    const [first, second] = ['RoutePolicy default/one', 'RoutePolicy default/two'];
    assert.deepEqual(
      mappings.map(({ gatewayRoute }) => gatewayRoute?.policies),
      [
        [
          { name: first, fields: ['bypass_auth'] },
          { name: second, fields: ['max_request_bytes', 'deny_addresses'] },
        ],
        [
          { name: first, fields: [] },
          { name: second, fields: ['deny_addresses'] },
        ],
        [],
      ],
    );
  });

  it('is refused if reading it fails, and stops no other object', async () => {
    let reads = 0;
    const broken = policy('gold', {
      // Read for its routes, and then by the acceptance.
      get bypass_auth() {
        reads += 1;
        if (reads <= 2) throw new Error('a bug');
        return true;
      },
    });
    const other = httpRoute('other', [{ backendRefs: [orders] }]);
    const { mappings, errors } = await createCluster()(...edge, broken, guarded, other);
    assert.deepEqual(errors, ['cannot be read: a bug']);
    assert.deepEqual(
      mappings.map(({ gatewayRoute }) => gatewayRoute?.fault),
      ['RoutePolicy default/gold is refused', undefined],
    );
  });

  it('says of a redirect only who may come', async () => {
    const redirect = { type: 'RequestRedirect', requestRedirect: { scheme: 'https' } };
    const route = routeWith([policyFilter('gold'), redirect], { backendRefs: [] });
    const gold = policy('gold', { bypass_auth: true, deny_addresses: ['192.0.2.1'], max_request_bytes: 7 });
    const { mappings, errors } = await createCluster()(...edge, gold, route);
    assert.deepEqual(errors, []);
    assert.deepEqual(
      mappings.map(({ denyAddresses, maxRequestBytes }) => [denyAddresses?.length, maxRequestBytes]),
      [[1, undefined]],
    );
  });

  it('repeats requests, each within the time of one attempt', async () => {
    const gold = policy('gold', { retry_policy: { retry_on: 'gateway-error' } });
    const route = routeWith([policyFilter('gold')], { timeouts: { request: '2s', backendRequest: '500ms' } });
    const { mappings } = await createCluster()(...edge, gold, route);
    assert.deepEqual(
      mappings.map(({ timeoutMs, retryPolicy }) => [timeoutMs, retryPolicy?.perTryTimeoutMs]),
      [[2000, 500]],
    );
  });
});

describe('a RoutePolicy that is missing', () => {
  const noFields = { refusal: undefined, weight: undefined };

  for (const [what, filter, objects, reason, fault] of [
    ['does not exist', policyFilter('gold'), [], 'FilterNotFound', 'there is no RoutePolicy default/gold'],
    [
      'is of another namespace',
      policyFilter('gold'),
      [policy('gold', {}, 'shop')],
      'FilterNotFound',
      'there is no RoutePolicy default/gold',
    ],
    [
      'has a field that belongs to the route',
      policyFilter('gold'),
      [policy('gold', { prefix: '/admin' })],
      'FilterNotFound',
      'RoutePolicy default/gold is refused',
    ],
    [
      'has a wrong value',
      policyFilter('gold'),
      [policy('gold', { bypass_auth: 7 })],
      'FilterNotFound',
      'RoutePolicy default/gold is refused',
    ],
    [
      'is of another kind',
      { type: 'ExtensionRef', extensionRef: { group: 'gateway.local', kind: 'Mapping', name: 'gold' } },
      [],
      'InvalidKind',
      'Mapping default/gold of the group "gateway.local" is no filter of frontdesk',
    ],
    [
      'is of another group',
      { type: 'ExtensionRef', extensionRef: { group: 'example.com', kind: 'RoutePolicy', name: 'gold' } },
      [policy('gold', {})],
      'InvalidKind',
      'RoutePolicy default/gold of the group "example.com" is no filter of frontdesk',
    ],
  ] as const)
    it(`makes its rule answer 500 if it ${what}`, async () => {
      const mirror = { type: 'RequestMirror', requestMirror: { backendRef: { name: 'cars', port: 80 } } };
      const route = routeWith([filter, mirror]);
      const { mappings, conditionsOf } = await createCluster()(...edge, ...objects, route);
      assert.deepEqual(
        mappings.map(({ gatewayRoute, refusal, weight, shadow }) => [gatewayRoute?.fault, { refusal, weight }, shadow]),
        [[fault, noFields, false]],
      );
      assert.deepEqual(conditionsOf(route), [`edge: Accepted ResolvedRefs=False (${reason})`]);
    });

  it('names the fields that it may have', async () => {
    const { errors } = await createCluster()(...edge, policy('gold', { prefix: '/admin' }), guarded);
    assert.deepEqual(errors, ['prefix is not a field of a RoutePolicy']);
  });

  it('keeps its last valid version as long as it exists', async () => {
    const resolve = createCluster();
    const bytesWith = async (...policies: readonly KubernetesObject[]) => {
      const { mappings } = await resolve(...edge, ...policies, guarded);
      return mappings.map(({ maxRequestBytes, gatewayRoute }) => gatewayRoute?.fault ?? maxRequestBytes);
    };
    const [valid, wrong] = [policy('gold', { max_request_bytes: 7 }), policy('gold', { max_request_bytes: 'all' })];
    assert.deepEqual(await bytesWith(valid), [7]);
    assert.deepEqual(await bytesWith(wrong), [7]);
    assert.deepEqual(await bytesWith(wrong), [7]);
    assert.deepEqual(await bytesWith(), ['there is no RoutePolicy default/gold']);
    assert.deepEqual(await bytesWith(wrong), ['RoutePolicy default/gold is refused']);
  });
});
