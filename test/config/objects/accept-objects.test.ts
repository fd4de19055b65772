/** Each object of a cluster is accepted or refused by itself, and a refused one fails closed for what it may guard. */
import assert from 'node:assert/strict';
import { type ClusterObject, createObjectAcceptance, type Mapping, recordError } from '#config';
import { annotated, clusterObject, resource } from '../../support/kubernetes/cluster-objects.ts';

const mapping = (path: string, spec: object) => resource('Mapping', path, { service: 'hotel', ...spec });

/** A valid record that this process cannot serve. */
const unservable = { service: 'https://unservable.example' };

function createAcceptance(trusted: readonly string[] = ['frontdesk'], gatewayDomain = 'gateway.local') {
  return createObjectAcceptance({
    gatewayDomain,
    trusted,
    directory: '.',
    strictPaths: true,
    findUnservable: ({ mappings }) =>
      mappings
        .filter(({ service, refusal }) => service === unservable.service && refusal === undefined)
        .map((record) => recordError(record, { message: 'cannot be served', remedy: '' })),
  });
}

async function accept(objects: readonly ClusterObject[], acceptance = createAcceptance()) {
  const { records, verdicts } = await acceptance.accept(objects);
  const states = Object.fromEntries(verdicts.map((one) => [`${one.object.namespace}/${one.object.name}`, one.state]));
  const messages = verdicts.flatMap(({ errors }) => errors.map(({ message }) => message));
  return { records, states, messages, routes: records.mappings.map(routeOf), verdicts };
}

/** `/x hotel.shop`, or `/x refused`. */
function routeOf({ prefix, service, refusal }: Mapping): string {
  return `${prefix} ${refusal === undefined ? service : 'refused'}`;
}

const auth = resource('AuthService', 'frontdesk/auth', { auth_service: 'frontdesk:auth' });

describe('the names of a cluster', () => {
  it('are those of the namespace of a record', async () => {
    const { records } = await accept([
      mapping('shop/orders', { prefix: '/a' }),
      mapping('default/orders', { prefix: '/b' }),
      mapping('shop/ports', { prefix: '/c', service: 'hotel:http' }),
      mapping('shop/other', { prefix: '/d', service: 'https://hotel.other.svc.cluster.local:8443' }),
      annotated('shop/cars', '{apiVersion: gateway/v1, kind: Mapping, name: cars, prefix: /e, service: "car:81"}'),
    ]);
    assert.deepEqual(
      records.mappings.map(({ name, service }) => `${name} ${service}`),
      [
        'orders.shop hotel.shop',
        'orders hotel.default',
        'ports.shop _http._tcp.hotel.shop',
        'other.shop https://hotel.other:8443',
        'cars.shop car.shop:81',
      ],
    );
  });

  it('are different for objects of different namespaces, whatever their names', async () => {
    const { records, states } = await accept([
      mapping('default/orders.shop', { prefix: '/a' }),
      mapping('shop/orders', { prefix: '/b' }),
    ]);
    assert.deepEqual(states, { 'default/orders.shop': 'accepted', 'shop/orders': 'accepted' });
    assert.deepEqual(
      records.mappings.map(({ name }) => name),
      ['orders.shop.default', 'orders.shop'],
    );
  });

  it('of Ambassador have the namespace of the object, whatever the record says', async () => {
    const acceptance = createAcceptance(['frontdesk'], 'getambassador.io');
    const annotations = (record: string) => ({
      metadata: {
        annotations: {
          'getambassador.io/config': `{apiVersion: getambassador.io/v2, kind: Mapping, service: a, ${record}}`,
        },
      },
    });
    const { messages, routes } = await accept(
      [
        clusterObject('Service', 'evil/a', annotations('name: orders, namespace: shop, prefix: /a'), 'v1'),
        clusterObject('Service', 'default/b', annotations('name: orders.shop, prefix: /b'), 'v1'),
        clusterObject('Service', 'shop/c', annotations('name: orders, namespace: shop, prefix: /c'), 'v1'),
      ],
      acceptance,
    );
    assert.deepEqual(messages, ['namespace is "shop", but this object is in the namespace evil']);
    assert.deepEqual(routes, ['/a refused', '/b a.default', '/c a.shop']);
  });

  it('never mean a module of this process, unless they say so', async () => {
    const { records } = await accept([
      auth,
      resource('RateLimitService', 'frontdesk/limits', { service: 'frontdesk:ratelimit' }),
      mapping('shop/auth', { prefix: '/a', service: 'auth' }),
    ]);
    assert.deepEqual(
      [records.authServices[0]?.authService, records.rateLimitServices[0]?.service, records.mappings[0]?.service],
      ['auth', 'ratelimit', 'auth.shop'],
    );
  });

  it('never mean a module of this process in the domain of the cluster', async () => {
    const services = ['auth.svc', 'http://ratelimit.svc.cluster.local'];
    const { routes } = await accept(
      services.map((service, index) => mapping(`shop/m${index}`, { prefix: `/${index}`, service })),
    );
    assert.deepEqual(routes, ['/0 auth.svc', '/1 http://ratelimit.svc.cluster.local']);
  });

  it('may have a namespace that is a number', async () => {
    const { routes } = await accept([
      mapping('123/a', { prefix: '/a', service: 'hotel' }),
      mapping('123/b', { prefix: '/b', service: 'https://hotel:web' }),
    ]);
    assert.deepEqual(routes, ['/a hotel.123.svc', '/b https://_web._tcp.hotel.123.svc']);
  });

  it('find the AuthService of a trusted namespace', async () => {
    const { records, states } = await accept([auth, mapping('shop/orders', { prefix: '/', auth_service: 'auth' })]);
    assert.deepEqual([records.mappings[0]?.authService, states['shop/orders']], ['auth.frontdesk', 'accepted']);
  });
});

describe('an object with an error', () => {
  const nested = (levels: number): object => (levels === 0 ? {} : { inner: nested(levels - 1) });
  const manyKeys = Object.fromEntries(Array.from({ length: 1001 }, (_, index) => [`key${index}`, 1]));
  for (const [what, spec, message] of [
    ['is nested deeper', { labels: nested(65) }, 'this object is nested more than 64 levels deep'],
    ['has more keys', manyKeys, 'this object has a map with more than 1000 keys'],
    ['has more values', { labels: Array.from({ length: 20_001 }, () => 1) }, 'this object has more than 20000 values'],
  ] as const)
    it(`is not read if it ${what} than any record, and closes what its match is unknown for`, async () => {
      const { routes, messages } = await accept([
        mapping('shop/open', { prefix: '/', bypass_auth: true }),
        mapping('shop/wrong', { prefix: '/x', ...spec }),
      ]);
      assert.deepEqual([routes, messages], [['/ refused'], [message]]);
    });

  it('is refused if reading it fails, and closes what its match is unknown for', async () => {
    let reads = 0;
    const spec = {
      get prefix() {
        reads += 1;
        if (reads === 1) throw new Error('a bug');
        return '/wrong';
      },
    };
    const { routes, states, messages } = await accept([
      mapping('shop/open', { prefix: '/', bypass_auth: true }),
      resource('Mapping', 'shop/wrong', spec),
      mapping('bar/other', { prefix: '/other' }),
    ]);
    assert.deepEqual(states, { 'shop/open': 'accepted', 'shop/wrong': 'refused', 'bar/other': 'accepted' });
    assert.deepEqual(routes, ['/ refused', '/other hotel.bar']);
    assert.deepEqual(messages, ['cannot be read: a bug']);
  });

  it('stops no other, and answers 503 for what it matches', async () => {
    const wrong = mapping('shop/wrong', { prefix: '/admin', host: 'a.example', timeout_ms: 'soon' });
    const { routes, states, records, verdicts } = await accept([mapping('shop/site', { prefix: '/' }), wrong]);
    assert.deepEqual(states, { 'shop/site': 'accepted', 'shop/wrong': 'refused' });
    assert.equal(verdicts[1]?.consequence, 'requests that it matches get 503');
    assert.deepEqual(routes, ['/ hotel.shop', '/admin refused']);
    assert.deepEqual(records.mappings[1]?.host, { kind: 'exact', value: 'a.example' });
  });

  it('keeps its last valid version, until it is deleted', async () => {
    const acceptance = createAcceptance();
    const good = mapping('shop/orders', { prefix: '/orders' });
    const bad = { ...good, value: { spec: { prefix: 'orders', service: 'hotel' } } };
    await accept([good], acceptance);
    const after = await accept([bad], acceptance);
    assert.deepEqual([after.routes, after.states], [['/orders hotel.shop'], { 'shop/orders': 'last-valid' }]);
    assert.deepEqual((await accept([], acceptance)).routes, []);
    assert.deepEqual((await accept([bad], acceptance)).states, { 'shop/orders': 'refused' });
  });

  it('keeps its requests closed when an older object had the same match only in a version that is refused', async () => {
    const acceptance = createAcceptance();
    const older = mapping('shop/older', { prefix: '/old' });
    await accept([older], acceptance);
    const moved = { ...older, value: { spec: { prefix: '/new', ...unservable } } };
    const wrong = mapping('shop/wrong', { prefix: '/new', timeout_ms: 'soon' });
    const { routes } = await accept([moved, wrong], acceptance);
    assert.deepEqual(routes, ['/old hotel.shop', '/new refused']);
  });

  it('gives its match to a valid object when its last valid version has another', async () => {
    const acceptance = createAcceptance();
    const older = mapping('shop/older', { prefix: '/old' });
    await accept([older], acceptance);
    const moved = { ...older, value: { spec: { prefix: '/new', ...unservable } } };
    const { routes } = await accept([moved, mapping('shop/newer', { prefix: '/new' })], acceptance);
    assert.deepEqual(routes, ['/old hotel.shop', '/new hotel.shop']);
  });

  it('drags no more than a hundred others along when each takes the match of the next', async () => {
    const acceptance = createAcceptance();
    const before = Array.from({ length: 200 }, (_, index) => mapping(`shop/m${index}`, { prefix: `/${index}` }));
    await accept(before, acceptance);
    const after = before.map((one, index) => {
      const spec = index === 0 ? { prefix: '/first', ...unservable } : { prefix: `/${index - 1}`, service: 'hotel' };
      return { ...one, value: { spec } };
    });
    const { states, routes } = await accept(after, acceptance);
    assert.equal(Object.values(states).filter((state) => state === 'accepted').length, 99);
    assert.ok(routes.includes('/first refused'));
  });

  it('is refused as a whole', async () => {
    const records = [
      '{apiVersion: gateway/v1, kind: Mapping, name: good, prefix: /good, service: a}',
      '{apiVersion: gateway/v1, kind: Mapping, name: bad, prefix: /bad, service: a, wight: 3}',
    ].join('\n---\n');
    const { routes } = await accept([annotated('shop/two', records)]);
    assert.deepEqual(routes, ['/good refused', '/bad refused']);
  });

  const open = { prefix: '/', bypass_auth: true };

  for (const [what, wrong] of [
    ['is no YAML', annotated('shop/broken', 'a: [')],
    ['has no kind', annotated('shop/broken', '{apiVersion: gateway/v1, prefix: /admin}')],
    ['has an unknown kind', annotated('shop/broken', '{apiVersion: gateway/v1, kind: Maping, prefix: /admin}')],
    ['has a wrong match', mapping('shop/broken', { prefix: 'admin' })],
  ] as const)
    it(`closes the open Mappings of its namespace if its match cannot be read: ${what}`, async () => {
      const other = mapping('other/site', { prefix: '/other', bypass_auth: true });
      const guarded = mapping('shop/guarded', { prefix: '/guarded' });
      const { routes, verdicts } = await accept([auth, mapping('shop/site', open), other, guarded, wrong]);
      assert.deepEqual(routes, ['/ refused', '/other hotel.other', '/guarded hotel.shop']);
      const [notice] = verdicts[1]?.notices ?? [];
      assert.match(notice?.message ?? '', /because (?:Service|Mapping) shop\/broken is refused, and what it matches/);
    });

  it('keeps the same records for a cluster that has not changed', async () => {
    const acceptance = createAcceptance();
    const objects = [
      auth,
      mapping('shop/site', { prefix: '/', auth_service: 'auth' }),
      mapping('shop/a', { prefix: '/x', weight: 10 }),
      mapping('shop/b', { prefix: '/x', weight: 10, timeout_ms: -1 }),
      annotated('shop/broken', 'a: ['),
      mapping('shop/open', { prefix: '/open', bypass_auth: true }),
    ];
    const first = await accept(objects, acceptance);
    const second = await accept(objects, acceptance);
    assert.deepEqual(first.routes, ['/ hotel.shop', '/x hotel.shop', '/x refused', '/open refused']);
    for (const [index, record] of second.records.mappings.entries())
      assert.equal(record, first.records.mappings[index]);
  });

  it('leaves a shadow alone, which guards nothing', async () => {
    const shadow = mapping('shop/copy', { prefix: '/', shadow: true, weight: 'all' });
    assert.deepEqual((await accept([mapping('shop/site', { prefix: '/' }), shadow])).routes, ['/ hotel.shop']);
  });
});

describe('an AuthService with an error', () => {
  const broken = resource('AuthService', 'frontdesk/auth', { auth_service: 'frontdesk:auth', timeout_ms: -1 });

  it('closes every Mapping that needs it', async () => {
    const { routes, verdicts } = await accept([
      broken,
      mapping('shop/guarded', { prefix: '/guarded' }),
      mapping('shop/named', { prefix: '/named', auth_service: 'auth' }),
      mapping('shop/open', { prefix: '/open', bypass_auth: true }),
    ]);
    assert.deepEqual(routes, ['/guarded refused', '/named refused', '/open hotel.shop']);
    const [, guarded] = verdicts;
    assert.deepEqual(
      [guarded?.state, guarded?.notices.map(({ message }) => message)],
      ['accepted', ['answers 503, because AuthService frontdesk/auth is refused, and there is no other AuthService']],
    );
  });

  it("closes the Mappings that need it as well if it is Ambassador's Module and only another record is wrong", async () => {
    const records = [
      '{apiVersion: getambassador.io/v2, kind: Module, name: authentication, config: {auth_service: "auth:3000"}}',
      '{apiVersion: getambassador.io/v2, kind: Mapping, name: wrong, prefix: /wrong, service: a, timeout_ms: soon}',
    ].join('\n---\n');
    const value = { metadata: { annotations: { 'getambassador.io/config': records } } };
    const { routes } = await accept(
      [clusterObject('Service', 'frontdesk/auth', value, 'v1'), mapping('shop/guarded', { prefix: '/guarded' })],
      createAcceptance(['frontdesk'], 'getambassador.io'),
    );
    assert.deepEqual(routes, ['/wrong refused', '/guarded refused']);
  });

  it('leaves those alone that have another one, which is older', async () => {
    const first = resource('AuthService', 'frontdesk/first', { auth_service: 'auth:3000' });
    const { routes } = await accept([first, broken, mapping('shop/guarded', { prefix: '/guarded' })]);
    assert.deepEqual(routes, ['/guarded hotel.shop']);
  });

  for (const [what, older] of [
    ['', broken],
    [' in an annotation', annotated('frontdesk/auth', '{kind: AuthService, name: auth, apiVersion: gateway/v1}')],
    [' in an annotation that is no YAML', annotated('frontdesk/auth', 'kind: AuthService\nname: [')],
  ] as const)
    it(`is not replaced as the default by a newer one${what}`, async () => {
      const second = resource('AuthService', 'frontdesk/second', { auth_service: 'auth:3000' });
      const { routes, states, messages } = await accept([
        older,
        second,
        mapping('shop/guarded', { prefix: '/guarded' }),
        mapping('shop/named', { prefix: '/named', auth_service: 'second' }),
      ]);
      assert.deepEqual(routes, ['/guarded refused', '/named refused']);
      assert.equal(states['frontdesk/second'], 'refused');
      assert.match(messages.join(), /frontdesk\/auth is refused, and may be the default/);
    });

  it('does not take the place of a newer one that was the default before', async () => {
    const acceptance = createAcceptance();
    const second = resource('AuthService', 'frontdesk/second', { auth_service: 'auth:3000' });
    const site = mapping('shop/guarded', { prefix: '/guarded' });
    await accept([second, site], acceptance);
    const { routes, states } = await accept([broken, second, site], acceptance);
    assert.deepEqual([routes, states['frontdesk/second']], [['/guarded hotel.shop'], 'accepted']);
  });

  it('is no obstacle to a newer default if it is none itself', async () => {
    const other = resource('AuthService', 'frontdesk/other', { auth_service: 'a:1', default: false, timeout_ms: -1 });
    const { routes } = await accept([other, auth, mapping('shop/guarded', { prefix: '/guarded' })]);
    assert.deepEqual(routes, ['/guarded hotel.shop']);
  });

  it('keeps its last valid version', async () => {
    const acceptance = createAcceptance();
    const site = mapping('shop/guarded', { prefix: '/guarded' });
    await accept([auth, site], acceptance);
    const { records, states } = await accept([{ ...auth, value: broken.value }, site], acceptance);
    assert.deepEqual([records.authServices.length, states['frontdesk/auth']], [1, 'last-valid']);
  });

  it('has no effect on others if its namespace is not trusted', async () => {
    const foreign = resource('AuthService', 'shop/auth', { auth_service: 'mine:3000' });
    const { routes, states, messages } = await accept([
      auth,
      foreign,
      mapping('shop/site', { prefix: '/' }),
      mapping('other/site', { prefix: '/other' }),
    ]);
    assert.deepEqual(routes, ['/ hotel.shop', '/other hotel.other']);
    assert.equal(states['shop/auth'], 'refused');
    assert.match(messages.join(), /does not count from this namespace/);
  });
});

describe('a RateLimitService with an error', () => {
  const limiter = (spec: object, path = 'frontdesk/limits') =>
    resource('RateLimitService', path, { service: 'frontdesk:ratelimit', ...spec });
  const wrong = { timeout_ms: -1 };
  const labels = (domain: string) => ({ labels: { [domain]: [{ all: ['remote_address'] }] } });
  const mappings = [
    mapping('shop/limited', { prefix: '/limited', ...labels('gateway') }),
    mapping('shop/other', { prefix: '/other', ...labels('other') }),
    mapping('shop/free', { prefix: '/free' }),
  ];
  const closedRoutes = async (...objects: readonly ClusterObject[]) => {
    const { routes } = await accept([...objects, ...mappings]);
    return routes.filter((route) => route.endsWith(' refused')).map((route) => route.split(' ')[0]);
  };

  for (const [what, spec, closed] of [
    ['closes the Mappings with labels of its domain', { failure_mode_deny: true, ...wrong }, ['/limited']],
    ['of another domain closes those', { failure_mode_deny: true, domain: 'other', ...wrong }, ['/other']],
    [
      'closes all with labels if its domain cannot be read',
      { failure_mode_deny: true, domain: 3 },
      ['/limited', '/other'],
    ],
    ['closes them if failure_mode_deny cannot be read', { failure_mode_deny: 'yes' }, ['/limited']],
    ['lets requests pass without failure_mode_deny', wrong, []],
    ['lets requests pass with failure_mode_deny: false', { failure_mode_deny: false, domain: 3 }, []],
  ] as const)
    it(what, async () => assert.deepEqual(await closedRoutes(limiter(spec)), closed));

  it('closes them in an annotation that is no YAML, if it may deny', async () => {
    const text = 'kind: RateLimitService\nfailure_mode_deny: true\nname: [';
    assert.deepEqual(await closedRoutes(auth, annotated('frontdesk/limits', text)), ['/limited', '/other']);
    assert.deepEqual(await closedRoutes(auth, annotated('frontdesk/limits', 'kind: RateLimitService\nname: [')), []);
  });

  it('says so, and what follows from it', async () => {
    const { verdicts } = await accept([limiter({ failure_mode_deny: true, ...wrong }), ...mappings]);
    assert.equal(verdicts[0]?.consequence, 'Mappings with labels for its domain answer 503');
    assert.equal(
      verdicts[1]?.notices[0]?.message,
      'answers 503, because RateLimitService frontdesk/limits is refused, which would limit its requests',
    );
  });

  it('closes nothing from a namespace that does not count, or beside another one', async () => {
    const denying = { failure_mode_deny: true, ...wrong };
    assert.deepEqual(await closedRoutes(limiter(denying, 'shop/limits')), []);
    assert.deepEqual(await closedRoutes(limiter(denying), limiter({}, 'frontdesk/second')), []);
  });

  it('keeps its last valid version', async () => {
    const acceptance = createAcceptance();
    const good = limiter({ failure_mode_deny: true });
    await accept([good, ...mappings], acceptance);
    const { value } = limiter({ failure_mode_deny: true, ...wrong });
    const { routes, states } = await accept([{ ...good, value }, ...mappings], acceptance);
    assert.deepEqual([routes.join().includes('refused'), states['frontdesk/limits']], [false, 'last-valid']);
  });
});

describe('objects in conflict', () => {
  it('with the same match: the older one counts, and the younger one takes nothing from it', async () => {
    const { routes, states, verdicts } = await accept([
      mapping('shop/old', { prefix: '/x' }),
      mapping('other/young', { prefix: '/x' }),
    ]);
    assert.deepEqual([routes, states], [['/x hotel.shop'], { 'shop/old': 'accepted', 'other/young': 'refused' }]);
    assert.equal(verdicts[1]?.consequence, 'Mapping other/young has no effect');
  });

  it('with the same name: the younger one answers 503 for what it matches', async () => {
    const young = annotated(
      'shop/young',
      '{apiVersion: gateway/v1, kind: Mapping, name: site, prefix: /admin, service: a}',
    );
    const { routes } = await accept([mapping('shop/site', { prefix: '/', bypass_auth: true }), young]);
    assert.deepEqual(routes, ['/ hotel.shop', '/admin refused']);
  });

  it('an older one that is refused is not replaced by a younger one with the same match', async () => {
    const { routes } = await accept([
      mapping('shop/old', { prefix: '/x', timeout_ms: -1 }),
      mapping('other/young', { prefix: '/x' }),
    ]);
    assert.deepEqual(routes, ['/x refused']);
  });

  for (const [what, spec] of [
    ['has other rules of access', { timeout_ms: -1 }],
    ['has rules of access that cannot be read', { allow_addresses: ['everybody'], bypass_auth: true }],
  ] as const)
    it(`give no share of requests to a newer Mapping if the older one is refused and ${what}`, async () => {
      const main = mapping('shop/main', { prefix: '/x', ...spec });
      const open = mapping('other/open', { prefix: '/x', weight: 100, bypass_auth: true });
      const { routes, states } = await accept([main, open]);
      assert.deepEqual(states, { 'shop/main': 'refused', 'other/open': 'refused' });
      assert.deepEqual(
        routes.filter((route) => route !== '/x refused'),
        [],
      );
    });

  it('a refused canary answers 503 for its share, and a refused main Mapping for the rest', async () => {
    const canary = (spec: object) => mapping('shop/canary', { prefix: '/x', weight: 10, ...spec });
    const main = (spec: object) => mapping('shop/main', { prefix: '/x', ...spec });
    const weights = async (objects: readonly ClusterObject[]) =>
      (await accept(objects)).records.mappings.map((one) => `${routeOf(one)} ${one.weight ?? 'rest'}`);
    assert.deepEqual(await weights([canary({ timeout_ms: -1 }), main({})]), ['/x refused 10', '/x hotel.shop rest']);
    assert.deepEqual(await weights([canary({}), main({ timeout_ms: -1 })]), ['/x hotel.shop 10', '/x refused rest']);
    assert.deepEqual(await weights([canary({}), main({ weight: 90, timeout_ms: -1 })]), [
      '/x hotel.shop 10',
      '/x refused 90',
    ]);
    assert.deepEqual(await weights([canary({}), main({ weight: 'most' })]), ['/x hotel.shop 10', '/x refused rest']);
  });
});

describe('a namespace that is not trusted', () => {
  for (const service of [
    'localhost:8001',
    'http://127.0.0.1:9',
    'http://[::1]:9',
    'http://[0:0::1]:9',
    'http://[::ffff:127.0.0.1]:9',
    'http://169.254.169.254',
    'http://[fd00:ec2::254]',
    'a.localhost:9',
  ])
    it(`cannot lead clients to the machine of frontdesk: ${service}`, async () => {
      const { states } = await accept([mapping('shop/site', { prefix: '/', service })]);
      assert.deepEqual(states, { 'shop/site': 'refused' });
      assert.deepEqual((await accept([mapping('frontdesk/site', { prefix: '/', service })])).states, {
        'frontdesk/site': 'accepted',
      });
    });

  for (const [service, expected] of [
    ['localhost.svc:8001', 'localhost.svc:8001'],
    ['http://127.0.0.1.svc.cluster.local:9', 'http://127.0.0.1.svc.cluster.local:9'],
    ['127.1.svc', '127.1.svc'],
    ['a.localhost.svc', 'refused'],
  ] as const)
    it(`cannot hide the machine of frontdesk behind the domain of the cluster: ${service}`, async () => {
      const { routes } = await accept([mapping('shop/site', { prefix: '/', service })]);
      assert.deepEqual(routes, [`/ ${expected}`]);
    });

  it('is closed without a default AuthService if it has one that does not count', async () => {
    const objects = [
      resource('AuthService', 'shop/auth', { auth_service: 'own' }),
      mapping('shop/orders', { prefix: '/orders' }),
      mapping('shop/open', { prefix: '/open', bypass_auth: true }),
      mapping('other/site', { prefix: '/' }),
    ];
    const { routes, verdicts } = await accept(objects);
    assert.deepEqual(routes, ['/orders refused', '/open hotel.shop', '/ hotel.other']);
    assert.equal(
      verdicts[0]?.consequence,
      'without a default AuthService, the Mappings of shop that need one answer 503',
    );
    assert.deepEqual((await accept([...objects, auth])).routes, [
      '/orders hotel.shop',
      '/open hotel.shop',
      '/ hotel.other',
    ]);
  });

  it('cannot use the certificates of others', async () => {
    const tls = { client_cert: '/tls/shop.pem', client_key: '/tls/shop.key' };
    const { messages } = await accept([mapping('shop/site', { prefix: '/', service: 'https://bank.example', tls })]);
    assert.match(messages.join(), /tls names files of frontdesk \(client_cert, client_key\)/);
  });
});
