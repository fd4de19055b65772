/** Which listeners a route attaches to, and what its status says if it does not. */
import assert from 'node:assert/strict';
import type { KubernetesObject } from '../../support/kubernetes/client.ts';
import {
  gateway,
  gatewayClass,
  grpcRoute,
  httpRoute,
  serviceObject,
  withSpec,
} from '../../support/kubernetes/gateway-objects.ts';
import { createCluster, orders } from './cluster.ts';

interface Attachment {
  /** Those of the Gateway `edge`, each with the port 80 for HTTP unless it says otherwise. */
  readonly listeners?: readonly object[];
  readonly route?: KubernetesObject;
  readonly parentRef?: object;
  readonly hostnames?: readonly string[];
  readonly namespaces?: readonly KubernetesObject[];
}

const rules = [{ backendRefs: [{ ...orders, namespace: 'default' }] }];
const route = httpRoute('shop', rules);

/** Resolves a route that has `edge` as its only parent. */
async function attach({ listeners = [{}], namespaces = [], ...given }: Attachment) {
  const edge = gateway(
    'edge',
    listeners.map((one) => ({ name: 'http', port: 80, protocol: 'HTTP', ...one })),
  );
  const { route: one = route, parentRef, hostnames } = given;
  const parentRefs = [{ name: 'edge', namespace: 'default', ...parentRef }];
  const attached = withSpec(one, { parentRefs, ...(hostnames && { hostnames }) });
  const found = await createCluster()(gatewayClass, edge, ...namespaces, serviceObject('orders'), attached);
  const [conditions = ''] = found.conditionsOf(attached) ?? [];
  const counts = (found.conditionsOf(edge) ?? []).slice(1).map((line) => Number(/(\d+) attached/.exec(line)?.[1]));
  const hosts = found.mappings.map(
    ({ host }) => host && (host.kind === 'suffix' ? `*${host.value}` : Object(host).value),
  );
  return { conditions: conditions.replace(/ ResolvedRefs.*/, ''), counts, hosts, ...found };
}

function check(what: string, given: Attachment, expected: readonly number[] | string) {
  it(what, async () => {
    const { conditions, counts, mappings } = await attach(given);
    if (typeof expected !== 'string') return assert.deepEqual([conditions, counts], ['edge: Accepted', expected]);
    assert.equal(conditions, `edge: Accepted=False (${expected})`);
    assert.deepEqual([mappings, counts.every((count) => count === 0)], [[], true]);
  });
}

describe('a route attaches', () => {
  const two = [{}, { name: 'other', port: 8080 }];

  check('to all listeners of a Gateway', { listeners: two }, [1, 1]);
  check('to the listener that it names', { listeners: two, parentRef: { sectionName: 'other' } }, [0, 1]);
  check('to the listeners of the port that it names', { listeners: two, parentRef: { port: 80 } }, [1, 0]);
  check('to no listener with another name', { parentRef: { sectionName: 'none' } }, 'NoMatchingParent');
  check('to no listener with another port', { parentRef: { port: 8080 } }, 'NoMatchingParent');
  check(
    'to no listener with the name and another port',
    { listeners: two, parentRef: { sectionName: 'http', port: 8080 } },
    'NoMatchingParent',
  );
  check('to the listeners that are served', { listeners: [{}, { name: 'tcp', protocol: 'TCP', port: 8080 }] }, [1, 0]);
  check('to none that is not served', { listeners: [{ port: 81 }] }, 'NoMatchingParent');
  check(
    'to those with a hostname in common',
    { listeners: [{ hostname: '*.example' }, { name: 'b', hostname: 'b.example' }] },
    [1, 0],
  );
  check(
    'to none without a hostname in common',
    { listeners: [{ hostname: 'b.example' }] },
    'NoMatchingListenerHostname',
  );

  it('with each parent by itself', async () => {
    const parentRefs = [
      { name: 'edge' },
      { name: 'edge', sectionName: 'none' },
      { name: 'none' },
      { name: 'edge', kind: 'Service', group: '' },
    ];
    const one = withSpec(route, { parentRefs });
    const edge = gateway('edge', [{ name: 'http', port: 80, protocol: 'HTTP' }]);
    const { conditionsOf, mappings } = await createCluster()(gatewayClass, edge, serviceObject('orders'), one);
    assert.deepEqual(conditionsOf(one), [
      'edge: Accepted ResolvedRefs',
      'edge: Accepted=False (NoMatchingParent) ResolvedRefs',
    ]);
    assert.equal(mappings.length, 1);
  });

  it('to the Gateway of its own namespace unless it names another one', async () => {
    const own = { ...httpRoute('shop', rules, 'shop'), spec: { parentRefs: [{ name: 'edge' }], rules } };
    const edge = gateway('edge', [
      { name: 'http', port: 80, protocol: 'HTTP', allowedRoutes: { namespaces: { from: 'All' } } },
    ]);
    const { conditionsOf } = await createCluster()(gatewayClass, edge, own);
    assert.equal(conditionsOf(own), undefined);
  });
});

describe('allowedRoutes', () => {
  const theirs = httpRoute('shop', rules, 'shop');
  const from = (value: string, selector?: object) => [{ allowedRoutes: { namespaces: { from: value, selector } } }];
  const namespace = (labels: object): KubernetesObject => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'shop', ...{ labels } },
  });
  const labelled = [namespace({ team: 'shop' })];

  check('lets routes of its own namespace in', { listeners: from('Same') }, [1]);
  check('lets no others in', { listeners: from('Same'), route: theirs }, 'NotAllowedByListeners');
  check('lets no others in by default', { route: theirs }, 'NotAllowedByListeners');
  check('may let all in', { listeners: from('All'), route: theirs }, [1]);
  check('may let none in', { listeners: from('None') }, 'NotAllowedByListeners');

  for (const [what, selector, isSelected] of [
    ['a label', { matchLabels: { team: 'shop' } }, true],
    ['a label with another value', { matchLabels: { team: 'cars' } }, false],
    ['two labels of which it has one', { matchLabels: { team: 'shop', tier: '1' } }, false],
    ['no condition', {}, true],
    ['a value of several', { matchExpressions: [{ key: 'team', operator: 'In', values: ['shop', 'cars'] }] }, true],
    ['none of several values', { matchExpressions: [{ key: 'team', operator: 'NotIn', values: ['shop'] }] }, false],
    [
      'no such value, of a label that is not there',
      { matchExpressions: [{ key: 'tier', operator: 'NotIn', values: ['1'] }] },
      true,
    ],
    ['a label with any value', { matchExpressions: [{ key: 'team', operator: 'Exists' }] }, true],
    ['a label that no object has', { matchExpressions: [{ key: 'constructor', operator: 'Exists' }] }, false],
    ['no such label', { matchExpressions: [{ key: 'team', operator: 'DoesNotExist' }] }, false],
    ['an operator that is not known', { matchExpressions: [{ key: 'team', operator: 'Gt', values: ['1'] }] }, false],
  ] as const)
    check(
      `${isSelected ? 'selects' : 'does not select'} by ${what}`,
      { listeners: from('Selector', selector), route: theirs, namespaces: labelled },
      isSelected ? [1] : 'NotAllowedByListeners',
    );

  check(
    'selects by labels no namespace that has not been read',
    { listeners: from('Selector', { matchLabels: { team: 'shop' } }), route: theirs },
    'NotAllowedByListeners',
  );
  check(
    'selects by labels that a namespace does not have none that has not been read',
    { listeners: from('Selector', { matchExpressions: [{ key: 'team', operator: 'DoesNotExist' }] }), route: theirs },
    'NotAllowedByListeners',
  );
  check(
    'without a selector selects nothing',
    { listeners: from('Selector'), route: theirs, namespaces: labelled },
    'NotAllowedByListeners',
  );

  const kinds = (...names: readonly string[]) => [{ allowedRoutes: { kinds: names.map((kind) => ({ kind })) } }];
  check('may name the kind', { listeners: kinds('HTTPRoute') }, [1]);
  check('may name another kind', { listeners: kinds('GRPCRoute') }, 'NotAllowedByListeners');
  check(
    'may name another kind for a GRPCRoute',
    { listeners: kinds('HTTPRoute'), route: grpcRoute('shop', rules) },
    'NotAllowedByListeners',
  );
});

describe('the hostnames of a route', () => {
  const listeners = [{ hostname: '*.shop.example' }];
  for (const [what, given, expected] of [
    ['are its own', { hostnames: ['a.example', '*.b.example'] }, ['a.example', '*.b.example']],
    ['are all without any', { hostnames: [] }, [undefined]],
    ['are those of the listener without any', { listeners, hostnames: [] }, ['*.shop.example']],
    [
      'are those in common',
      { listeners, hostnames: ['a.shop.example', 'b.example', '*.example'] },
      ['a.shop.example', '*.shop.example'],
    ],
  ] as const)
    it(what, async () => assert.deepEqual((await attach(given)).hosts, expected));
});
