/** What a namespace that is not trusted may write, and that it changes nothing for the others. */
import assert from 'node:assert/strict';
import { type ClusterObject, createObjectAcceptance, type Mapping } from '#config';
import { annotated, resource } from '../../support/kubernetes/cluster-objects.ts';

const mapping = (path: string, spec: object) => resource('Mapping', path, { service: 'orders', ...spec });

const auth = resource('AuthService', 'frontdesk/auth', { auth_service: 'frontdesk:auth' });
const orders = mapping('shop/orders', { prefix: '/orders' });
const open = mapping('shop/open', { prefix: '/open', bypass_auth: true });

async function accept(objects: readonly ClusterObject[], gatewayDomain = 'gateway.local') {
  const acceptance = createObjectAcceptance({
    gatewayDomain,
    trusted: ['frontdesk'],
    directory: '.',
    strictPaths: true,
    findUnservable: () => [],
  });
  const { records, verdicts } = await acceptance.accept(objects);
  return { records, states: verdicts.map(({ state }) => state) };
}

const routeOf = ({ name, prefix, service, weight, shadow, refusal }: Mapping) =>
  [name, prefix, refusal === undefined ? service : 'refused', weight, shadow && 'shadow'].filter(Boolean).join(' ');

describe('a namespace that is not trusted', () => {
  const victims = [auth, orders, open];

  function changesNothing([what, attack, gatewayDomain]: Attack): void {
    it(`changes nothing for others with ${what}`, async () => {
      const { records, states } = await accept([...victims, attack], gatewayDomain);
      const taken = records.mappings.filter(({ prefix }) => prefix === '/orders' || prefix === '/open');
      assert.deepEqual(taken.map(routeOf), ['orders.shop /orders orders.shop', 'open.shop /open orders.shop']);
      const { authServices, rateLimitServices, versions, addresses } = records;
      assert.deepEqual([authServices.length, rateLimitServices, versions, addresses], [1, [], [], []]);
      assert.deepEqual(states.slice(0, victims.length), ['accepted', 'accepted', 'accepted']);
    });
  }

  function refusesNothing([what, attack, gatewayDomain]: Attack): void {
    it(`refuses nothing that others write later, with ${what}`, async () => {
      const { states } = await accept([attack, ...victims], gatewayDomain);
      assert.deepEqual(states.slice(-victims.length), ['accepted', 'accepted', 'accepted']);
    });
  }

  const attacks: readonly Attack[] = [
    ['an annotation that is no YAML', annotated('evil/a', '{{{')],
    ['an annotation of aliases', annotated('evil/a', bomb())],
    ['an AuthService', resource('AuthService', 'evil/auth', { auth_service: 'evil' })],
    ['an AuthService that cannot be read', resource('AuthService', 'evil/auth', { proto: 3 })],
    ['a RateLimitService', resource('RateLimitService', 'evil/limits', { service: 'evil' })],
    ['a Version that ends everything', resource('Version', 'evil/v', { prefix: '/orders', sunset: '2020-01-01' })],
    ['a shadow', mapping('evil/shadow', { prefix: '/orders', shadow: true })],
    ['the name of a record of another namespace', mapping('evil/orders.shop', { prefix: '/x' })],
    ambassador('the namespace of others', 'kind: Mapping, name: orders, namespace: shop, prefix: /x/, service: evil'),
    ambassador('a Module', 'kind: Module, name: ambassador, config: {ip_deny: [{remote: 0.0.0.0/0}]}'),
  ];
  for (const attack of attacks) {
    changesNothing(attack);
    refusesNothing(attack);
  }
  changesNothing(['a canary', mapping('evil/canary', { prefix: '/orders', weight: 100 })]);
  changesNothing(['a broken canary', mapping('evil/canary', { prefix: '/orders', weight: 100, timeout_ms: 'soon' })]);

  it('has Mappings whose services must not be this machine, unlike those of a trusted one', async () => {
    const text = (name: string) =>
      JSON.stringify({ apiVersion: 'gateway/v1', kind: 'Mapping', name, prefix: `/${name}`, service: 'a' });
    const found = await accept([
      orders,
      annotated('shop/annotated', text('a')),
      mapping('frontdesk/own', { prefix: '/own' }),
      annotated('frontdesk/annotated', text('b')),
    ]);
    assert.deepEqual(
      found.records.mappings.map(({ name, isUntrusted }) => [name, isUntrusted]),
      [
        ['orders.shop', true],
        ['a.shop', true],
        ['own.frontdesk', false],
        ['b.frontdesk', false],
      ],
    );
  });

  for (const service of ['frontdesk:auth', 'frontdesk:ratelimit'])
    it(`cannot lead clients to the module ${service}`, async () => {
      const { states } = await accept([mapping('evil/module', { prefix: '/module', service })]);
      assert.deepEqual(states, ['refused']);
    });
});

/** An attack, the object that makes it, and the domain of the gateway. */
type Attack = readonly [string, ClusterObject, string?];

function ambassador(what: string, fields: string): Attack {
  const domain = 'getambassador.io';
  return [
    `${what} in Ambassador's annotation`,
    annotated('evil/a', `{apiVersion: ${domain}/v2, ${fields}}`, domain),
    domain,
  ];
}

/** A text of 1 KB whose aliases stand for a billion items. */
function bomb(): string {
  const levels = Array.from(
    { length: 9 },
    (_, index) => `l${index + 1}: &l${index + 1} [${`*l${index}, `.repeat(10)}]`,
  );
  return ['l0: &l0 x', ...levels, 'apiVersion: gateway/v1', 'kind: Mapping'].join('\n');
}
