/** Which listeners of Gateways are served, with which certificates, and what the statuses say about the others. */
import assert from 'node:assert/strict';
import type { KubernetesObject } from '../../support/kubernetes/client.ts';
import {
  gateway,
  gatewayClass,
  httpListener,
  httpRoute,
  tlsSecret,
  withSpec,
} from '../../support/kubernetes/gateway-objects.ts';
import { temporaryFiles } from '../../support/temporary-files.ts';
import { type Certificate, makeCertificate } from '../../support/wire/certificate.ts';
import { createCluster, grantIn, orders, edge as usualObjects } from './cluster.ts';

const httpsListener = { name: 'https', port: 443, protocol: 'HTTPS' };
const route = httpRoute('shop', [{ backendRefs: [orders] }]);

/** The conditions of the only listener, and how many Mappings its route has. */
async function listen(
  listener: object,
  {
    others = [],
    spec = {},
    ports,
  }: { others?: readonly KubernetesObject[]; spec?: object; ports?: { http: number[]; https: number[] } } = {},
) {
  const edge = withSpec(gateway('edge', [{ name: 'http', ...listener }]), spec);
  const resolve = createCluster(ports && { ports });
  const found = await resolve(gatewayClass, edge, ...usualObjects.slice(2), ...others, route);
  const [ofGateway, ofListener = ''] = found.conditionsOf(edge) ?? [];
  return { ...found, ofGateway, ofListener: ofListener.replace(/^\S+: /, '').replace(/, \d attached$/, '') };
}

const served = 'Accepted ResolvedRefs Programmed';

describe('a listener', () => {
  for (const [what, listener, conditions] of [
    ['of HTTP at 80', {}, served],
    ['of HTTP at PORT', { port: 8080 }, served],
    ['of HTTP at another port', { port: 81 }, notAccepted('PortUnavailable')],
    ['of HTTP at a port for HTTPS', { port: 443 }, notAccepted('PortUnavailable')],
    ['of TCP', { protocol: 'TCP' }, notAccepted('UnsupportedProtocol')],
    ['of TLS', { protocol: 'TLS', port: 443 }, notAccepted('UnsupportedProtocol')],
    [
      'that passes TLS through',
      { ...httpsListener, tls: { mode: 'Passthrough' } },
      'Accepted=False (UnsupportedValue) ResolvedRefs=False (InvalidCertificateRef) Programmed=False (Invalid)',
    ],
    [
      'for an unknown kind',
      { allowedRoutes: { kinds: [{ kind: 'TCPRoute' }] } },
      'Accepted ResolvedRefs=False (InvalidRouteKinds) Programmed=False (Invalid)',
    ],
    [
      'for a kind of another group',
      { allowedRoutes: { kinds: [{ group: 'example.com', kind: 'HTTPRoute' }] } },
      'Accepted ResolvedRefs=False (InvalidRouteKinds) Programmed=False (Invalid)',
    ],
  ] as const)
    it(`${what} is ${conditions === served ? '' : 'not '}served`, async () => {
      const { ofListener, mappings } = await listen({ ...httpListener, ...listener });
      assert.equal(ofListener, conditions);
      assert.equal(mappings.length, conditions === served ? 1 : 0);
    });

  it('of HTTPS is not served without TLS_PORT, which the remedy names', async () => {
    const { conditionsOf, statusOf } = await listen(httpsListener, { ports: { http: [80], https: [] } });
    assert.match(conditionsOf(gateway('edge', []))?.[1] ?? '', /Accepted=False \(PortUnavailable\)/);
    assert.match(JSON.stringify(statusOf(gateway('edge', []))), /Set TLS_PORT, so that it serves HTTPS\./);
  });

  it('lists the kinds that it supports', async () => {
    const kinds = ['GRPCRoute', 'TCPRoute'].map((kind) => ({ kind }));
    const { statusOf } = await listen({ ...httpListener, allowedRoutes: { kinds } });
    const { listeners } = Object(statusOf(gateway('edge', [])));
    assert.deepEqual(listeners[0].supportedKinds, [{ group: 'gateway.networking.k8s.io', kind: 'GRPCRoute' }]);
  });
});

function notAccepted(reason: string): string {
  return `Accepted=False (${reason}) ResolvedRefs Programmed=False (Invalid)`;
}

describe('a Gateway', () => {
  for (const [what, spec, reason] of [
    ['with parameters', { infrastructure: { parametersRef: { name: 'a' } } }, 'InvalidParameters'],
    ['that asks clients for certificates', { tls: { frontend: {} } }, 'UnsupportedValue'],
    ['with an address that frontdesk does not have', { addresses: [{ value: '192.0.2.9' }] }, 'UnsupportedAddress'],
  ] as const)
    it(`${what} serves nothing`, async () => {
      const { ofGateway, ofListener, mappings, notices } = await listen(httpListener, { spec });
      assert.equal(ofGateway, `Accepted=False (${reason}) Programmed=False (Invalid)`);
      assert.equal(ofListener, notAccepted(reason));
      assert.equal(mappings.length, 0);
      assert.equal(notices.filter((notice) => notice.startsWith('Gateway default/edge: ')).length, 1);
    });

  for (const addresses of [[{ value: '192.0.2.1' }], [{ type: 'IPAddress' }], []])
    it(`may have the addresses ${JSON.stringify(addresses)}`, async () => {
      assert.equal((await listen(httpListener, { spec: { addresses } })).ofGateway, 'Accepted Programmed');
    });

  it('of another class has no status, and no routes', async () => {
    const { conditionsOf, mappings } = await listen(httpListener, { spec: { gatewayClassName: 'other' } });
    assert.deepEqual([conditionsOf(gateway('edge', [])), conditionsOf(route), mappings], [undefined, undefined, []]);
  });

  it('of another controller has no status', async () => {
    const other = withSpec(gatewayClass, { controllerName: 'example.com/other' });
    const { conditionsOf } = await createCluster()(other, gateway('edge', [httpListener]));
    assert.deepEqual([conditionsOf(other), conditionsOf(gateway('edge', []))], [undefined, undefined]);
  });

  it('of a namespace that is not trusted serves nothing', async () => {
    const edge = gateway('edge', [httpListener], 'shop');
    const own = withSpec(httpRoute('shop', [{}], 'shop'), { parentRefs: [{ name: 'edge' }] });
    const { conditionsOf, mappings, notices } = await createCluster()(gatewayClass, edge, own);
    assert.deepEqual(conditionsOf(edge)?.[0], 'Accepted=False (NotTrusted) Programmed=False (Invalid)');
    assert.deepEqual(mappings, []);
    assert.match(notices[0] ?? '', /^Gateway shop\/edge: a Gateway does not count from this namespace/);
  });

  it('is accepted with a valid listener, and names those that are not', async () => {
    const edge = gateway('edge', [httpListener, { name: 'tcp', port: 81, protocol: 'TCP' }]);
    const { conditionsOf, statusOf, notices } = await createCluster()(gatewayClass, edge);
    assert.equal(conditionsOf(edge)?.[0], 'Accepted Programmed');
    const [{ reason, message }] = Object(statusOf(edge)).conditions;
    assert.deepEqual([reason, message.split('.')[0]], ['ListenersNotValid', 'Listeners are not valid: tcp']);
    assert.deepEqual(notices, ['Gateway default/edge: listener tcp: the protocol TCP is not supported']);
  });

  it('is not accepted without a valid listener', async () => {
    const { ofGateway } = await listen({ protocol: 'TCP', port: 80 });
    assert.equal(ofGateway, 'Accepted=False (ListenersNotValid) Programmed=False (Invalid)');
  });
});

describe('the certificate of a listener', () => {
  const writeFiles = temporaryFiles();
  let shop: Certificate;
  let other: Certificate;
  before(async function () {
    const [one, two] = [await makeCertificate(await writeFiles(), ''), await makeCertificate(await writeFiles(), '')];
    if (one === undefined || two === undefined) return this.skip();
    [shop, other] = [one, two];
  });

  const listenerOf = (certificateRefs: readonly object[] | undefined, fields: object = {}) => ({
    ...httpsListener,
    ...fields,
    tls: { certificateRefs },
  });
  const named = [{ name: 'shop-tls' }];

  it('is that of its Secret, for its hostname', async () => {
    const others = [tlsSecret('shop-tls', shop)];
    const { certificates, ofListener, mappings } = await listen(listenerOf(named, { hostname: '*.example' }), {
      others,
    });
    const expected = { name: 'Secret default/shop-tls', cert: shop.cert, key: shop.key, hosts: ['*.example'] };
    assert.deepEqual([certificates, ofListener], [[expected], served]);
    assert.deepEqual(
      mappings.map(({ gatewayRoute }) => gatewayRoute?.scheme),
      ['https'],
    );
  });

  it('is for all other hosts without a hostname', async () => {
    const { certificates } = await listen(listenerOf(named), { others: [tlsSecret('shop-tls', shop)] });
    assert.deepEqual(
      certificates.map(({ hosts }) => hosts),
      [undefined],
    );
  });

  it('is not used if the listener is not served', async () => {
    const others = [tlsSecret('shop-tls', shop)];
    assert.deepEqual((await listen(listenerOf(named, { port: 444 }), { others })).certificates, []);
  });

  it('is the new one after a change of its Secret', async () => {
    const resolve = createCluster();
    const objects = [gatewayClass, gateway('edge', [listenerOf(named)])];
    const certOf = async (pair: Certificate) =>
      (await resolve(...objects, tlsSecret('shop-tls', pair))).certificates[0]?.cert;
    assert.deepEqual([await certOf(shop), await certOf(other)], [shop.cert, other.cert]);
  });

  it('stays the last valid one while its Secret is broken, which the listener says, but not without the Secret', async () => {
    const resolve = createCluster();
    const edge = gateway('edge', [listenerOf(named)]);
    const certAndConditions = async (...others: readonly KubernetesObject[]) => {
      const { certificates, conditionsOf } = await resolve(gatewayClass, edge, ...others);
      return [certificates[0]?.cert, conditionsOf(edge)?.[1]];
    };
    await certAndConditions(tlsSecret('shop-tls', shop));
    const broken = 'https: Accepted ResolvedRefs=False (InvalidCertificateRef) Programmed, 0 attached';
    const mixed = tlsSecret('shop-tls', { cert: other.cert, key: shop.key });
    assert.deepEqual(await certAndConditions(mixed), [shop.cert, broken]);
    assert.equal((await certAndConditions())[0], undefined);
    assert.equal((await certAndConditions(mixed))[0], undefined);
  });

  const theirs = [{ name: 'shop-tls', namespace: 'shop' }];
  const from = { kind: 'Gateway', namespace: 'default' };
  for (const [what, references, others, reason, message] of [
    ['no Secret is named', [], () => [], 'InvalidCertificateRef', /^tls.certificateRefs is empty$/],
    [
      'several are named',
      [...named, ...named],
      () => [tlsSecret('shop-tls', shop)],
      'InvalidCertificateRef',
      /names several certificates, and one is supported$/,
    ],
    [
      'another kind is named',
      [{ ...named[0], kind: 'ConfigMap' }],
      () => [],
      'InvalidCertificateRef',
      /^ConfigMap default\/shop-tls of the group "" is no Secret$/,
    ],
    [
      'the Secret does not exist',
      named,
      () => [],
      'InvalidCertificateRef',
      /^there is no Secret default\/shop-tls of the type kubernetes.io\/tls$/,
    ],
    [
      'it has the key of another one',
      named,
      () => [tlsSecret('shop-tls', { cert: shop.cert, key: other.key })],
      'InvalidCertificateRef',
      /has no usable certificate and key \(the private key does not match the certificate\)$/,
    ],
    [
      'it is of another namespace without a grant',
      theirs,
      () => [tlsSecret('shop-tls', shop, 'shop')],
      'RefNotPermitted',
      /^no ReferenceGrant in the namespace shop permits the use of Secret shop\/shop-tls$/,
    ],
    [
      'its grant is for Services',
      theirs,
      () => [tlsSecret('shop-tls', shop, 'shop'), grantIn('shop', from, { group: '', kind: 'Service' })],
      'RefNotPermitted',
      /permits the use of/,
    ],
  ] as const)
    it(`keeps the listener from being served if ${what}`, async () => {
      const { ofListener, notices, certificates, mappings } = await listen(listenerOf(references), {
        others: others(),
      });
      assert.equal(ofListener, `Accepted ResolvedRefs=False (${reason}) Programmed=False (Invalid)`);
      const [notice = ''] = notices.filter((one) => one.startsWith('Gateway default/edge: listener http'));
      assert.match(notice.replace(/^Gateway default\/edge: listener https: /, ''), message);
      assert.deepEqual([certificates, mappings], [[], []]);
    });

  it('may be of another namespace with a grant', async () => {
    const grant = grantIn('shop', from, { group: '', kind: 'Secret', name: 'shop-tls' });
    const others = [tlsSecret('shop-tls', shop, 'shop'), grant];
    assert.equal((await listen(listenerOf(theirs), { others })).ofListener, served);
  });
});

describe('a GatewayClass', () => {
  it('is accepted, with the features in alphabetical order', async () => {
    const { conditionsOf, statusOf } = await createCluster()(gatewayClass);
    assert.deepEqual(conditionsOf(gatewayClass), ['Accepted']);
    const names = Object(statusOf(gatewayClass)).supportedFeatures.map(({ name }: { name: string }) => name);
    assert.deepEqual(names, names.toSorted());
    assert.ok(names.includes('HTTPRoute'));
  });

  it('is not accepted with parameters', async () => {
    const one = withSpec(gatewayClass, { parametersRef: { group: '', kind: 'ConfigMap', name: 'a' } });
    const { conditionsOf } = await createCluster()(one);
    assert.deepEqual(conditionsOf(one), ['Accepted=False (InvalidParameters)']);
  });
});
