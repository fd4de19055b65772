/** The addresses of Services, from Services and EndpointSlices as the API server sends them. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  type AddressChanges,
  createAddressStore,
  type EndpointSliceObject,
  type PortAddresses,
  type ServiceAddresses,
  type ServiceObject,
} from '#kubernetes';
import { hotelSlice } from '../support/kubernetes/addresses.ts';
import '../support/property-tests.ts';

type Spec = NonNullable<ServiceObject['spec']>;
type Conditions = NonNullable<EndpointSliceObject['endpoints']>[number]['conditions'];

const oneHttpPort: Spec = { clusterIP: '10.96.0.7', ports: [{ name: 'http', port: 80, targetPort: 8080 }] };

function serviceOf(spec: Spec = oneHttpPort, name = 'hotel'): ServiceObject {
  return { metadata: { namespace: 'shop', name }, spec };
}

/** What a new store says about Service hotel. */
function addressesOf(
  service: ServiceObject,
  slices: readonly EndpointSliceObject[],
  source?: 'endpoints' | 'service',
): ServiceAddresses {
  const [change] = createAddressStore(source).apply({ services: { present: [service] }, slices: { present: slices } });
  assert.ok(change?.addresses !== undefined);
  return change.addresses;
}

function endpoint(address: string, conditions?: Conditions) {
  return { addresses: [address], ...(conditions !== undefined && { conditions }) };
}

describe('the addresses of a Service', () => {
  function check(what: string, spec: Spec, slices: readonly EndpointSliceObject[], expected: readonly string[]) {
    it(`${what}: ${expected.join(', ') || 'none'}`, () =>
      assert.deepEqual(addressesOf(serviceOf(spec), slices).ports[0]?.addresses, expected));
  }

  const ofPods = (...endpoints: EndpointSliceObject['endpoints'] & object) => [hotelSlice('hotel-1', { endpoints })];

  check('no slice', oneHttpPort, [], []);
  check(
    'several slices, with an address twice',
    oneHttpPort,
    [
      hotelSlice('hotel-1', { endpoints: [endpoint('10.0.0.2'), endpoint('10.0.0.1')] }),
      hotelSlice('hotel-2', { endpoints: [endpoint('10.0.0.2'), endpoint('10.0.0.3')] }),
    ],
    ['10.0.0.1:8080', '10.0.0.2:8080', '10.0.0.3:8080'],
  );
  check(
    'slices of another Service and of none',
    oneHttpPort,
    [
      hotelSlice('car-1', { service: 'car', endpoints: [endpoint('10.0.0.1')] }),
      { ...hotelSlice('hotel-1', { endpoints: [endpoint('10.0.0.2')] }), metadata: { namespace: 'shop', name: 'x' } },
      {
        ...hotelSlice('hotel-1', { endpoints: [endpoint('10.0.0.3')] }),
        metadata: { namespace: 'other', name: 'y', labels: { 'kubernetes.io/service-name': 'hotel' } },
      },
    ],
    [],
  );
  check(
    'an unknown condition counts as ready',
    oneHttpPort,
    ofPods(
      endpoint('10.0.0.1', {}),
      endpoint('10.0.0.2', { ready: null }),
      endpoint('10.0.0.3', null),
      endpoint('10.0.0.4', { ready: false }),
    ),
    ['10.0.0.1:8080', '10.0.0.2:8080', '10.0.0.3:8080'],
  );
  check(
    'a pod that shuts down gets nothing while another is ready',
    oneHttpPort,
    ofPods(
      endpoint('10.0.0.1', { ready: false, serving: true, terminating: true }),
      endpoint('10.0.0.2', { ready: true, serving: true, terminating: false }),
    ),
    ['10.0.0.2:8080'],
  );
  check(
    'pods that shut down but still serve are better than none',
    oneHttpPort,
    [
      hotelSlice('hotel-1', { endpoints: [endpoint('10.0.0.1', { ready: false, serving: true, terminating: true })] }),
      hotelSlice('hotel-2', {
        endpoints: [
          endpoint('10.0.0.2', { ready: false, serving: null, terminating: true }),
          endpoint('10.0.0.3', { ready: false, serving: false, terminating: true }),
          endpoint('10.0.0.4', { ready: false, serving: true, terminating: null }),
        ],
      }),
    ],
    ['10.0.0.1:8080', '10.0.0.2:8080'],
  );
  check(
    'IPv6',
    oneHttpPort,
    [hotelSlice('hotel-1', { addressType: 'IPv6', endpoints: [endpoint('fd00::1')] })],
    ['[fd00::1]:8080'],
  );
  check(
    'host names',
    oneHttpPort,
    [hotelSlice('hotel-1', { addressType: 'FQDN', endpoints: [endpoint('hotel.example.com')] })],
    ['hotel.example.com:8080'],
  );
  const dual = { ...oneHttpPort, ipFamilies: ['IPv6', 'IPv4'] };
  const ofFamily = (addressType: string, address: string, conditions?: Conditions) =>
    hotelSlice(`hotel-${addressType}`, { addressType, endpoints: [endpoint(address, conditions)] });
  check(
    'two families are one address for each pod',
    dual,
    [ofFamily('IPv4', '10.0.0.1'), ofFamily('IPv6', 'fd00::1'), ofFamily('FQDN', 'pod.example.com')],
    ['[fd00::1]:8080', 'pod.example.com:8080'],
  );
  check(
    'the second family is better than none',
    dual,
    [ofFamily('IPv4', '10.0.0.1'), ofFamily('IPv6', 'fd00::1', { ready: false })],
    ['10.0.0.1:8080'],
  );
  check(
    'pods of one Service that listen on different ports',
    oneHttpPort,
    [
      hotelSlice('hotel-1', { endpoints: [endpoint('10.0.0.1')] }),
      hotelSlice('hotel-2', { endpoints: [endpoint('10.0.0.2')], ports: [{ name: 'http', port: 9090 }] }),
    ],
    ['10.0.0.1:8080', '10.0.0.2:9090'],
  );
  check(
    'a port without a name',
    { ports: [{ port: 80, targetPort: 8080 }] },
    [hotelSlice('hotel-1', { endpoints: [endpoint('10.0.0.1')], ports: [{ name: '', port: 8080 }] })],
    ['10.0.0.1:8080'],
  );
  check(
    'another name in the slice',
    oneHttpPort,
    [hotelSlice('hotel-1', { endpoints: [endpoint('10.0.0.1')], ports: [{ name: 'admin', port: 8080 }] })],
    [],
  );
  check(
    'a slice for every port',
    oneHttpPort,
    [hotelSlice('hotel-1', { endpoints: [endpoint('10.0.0.1')], ports: [{ name: 'http', port: null }] })],
    ['10.0.0.1:8080'],
  );
  check(
    'UDP under the same name',
    oneHttpPort,
    [
      hotelSlice('hotel-1', {
        endpoints: [endpoint('10.0.0.1')],
        ports: [{ name: 'http', port: 53, protocol: 'UDP' }],
      }),
    ],
    [],
  );
  check(
    'lists that the API server leaves out',
    oneHttpPort,
    [{ ...hotelSlice('hotel-1'), endpoints: null, ports: null }],
    [],
  );

  it('has no limit at 1,000 addresses (emissary#5167)', () => {
    const slices = Array.from({ length: 20 }, (_, slice) =>
      hotelSlice(`hotel-${slice}`, {
        endpoints: Array.from({ length: 100 }, (_, pod) => endpoint(`10.0.${slice}.${pod}`)),
      }),
    );
    assert.equal(addressesOf(serviceOf(), slices).ports[0]?.addresses.length, 2000);
  });

  it('leaves out ports for UDP', () => {
    const ports = [
      { name: 'dns', port: 53, protocol: 'UDP' },
      { name: 'dns-tcp', port: 53, protocol: 'TCP' },
    ];
    const found = addressesOf(serviceOf({ ports }), [
      hotelSlice('hotel-1', { endpoints: [endpoint('10.0.0.1')], ports: [{ name: 'dns-tcp', port: 5353 }] }),
    ]);
    assert.deepEqual(found.ports, [{ name: 'dns-tcp', port: 53, addresses: ['10.0.0.1:5353'] }]);
  });

  it('is any port of an external name', () => {
    const { ports, hosts } = addressesOf(
      serviceOf({ type: 'ExternalName', externalName: 'hotel.example.com', ports: [{ port: 443 }] }),
      [],
    );
    assert.deepEqual([ports[0]?.addresses, hosts], [['hotel.example.com:443'], ['hotel.example.com']]);
  });

  it('is none for a name that leads to the machine of frontdesk', () => {
    for (const externalName of ['localhost', 'metadata.localhost', '127.0.0.1', '169.254.169.254', '0x7f.1']) {
      const found = addressesOf(serviceOf({ type: 'ExternalName', externalName, ports: [{ port: 443 }] }), []);
      assert.deepEqual([found.ports[0]?.addresses, found.hosts], [[], []]);
      assert.equal(found.fault, 'has an external name that leads to the machine of frontdesk');
    }
    const slices = [hotelSlice('hotel-1', { addressType: 'FQDN', endpoints: [endpoint('a.localhost')] })];
    assert.deepEqual(addressesOf(serviceOf(), slices).ports[0]?.addresses, []);
  });

  it('is none for an address of the machine of frontdesk, which an API server would not accept', () => {
    for (const [addressType, ...own] of [
      ['IPv4', '127.0.0.1', '0.0.0.0', '169.254.169.254'],
      ['IPv6', '::1', '::', '0:0:0:0:0:0:0:1', 'fe80::1', 'fe80::1%eth0', 'fd00:ec2::254', '::ffff:127.0.0.1'],
    ] as const) {
      const slices = [hotelSlice('hotel-1', { addressType, endpoints: own.map((address) => endpoint(address)) })];
      assert.deepEqual(addressesOf(serviceOf(), slices).ports[0]?.addresses, []);
    }
  });

  it('is none for a name that no client can call, because it ends like an IPv4 address', () => {
    for (const externalName of ['hotel.123', 'hotel.0x', 'hotel.0x7f.']) {
      const found = addressesOf(serviceOf({ type: 'ExternalName', externalName, ports: [{ port: 443 }] }), []);
      assert.deepEqual(
        [found.ports[0]?.addresses, found.hosts, found.fault],
        [[], [], 'has an external name that is not the name of a host'],
      );
      const slices = [hotelSlice('hotel-1', { addressType: 'FQDN', endpoints: [endpoint(externalName)] })];
      assert.deepEqual(addressesOf(serviceOf(), slices).ports[0]?.addresses, []);
    }
  });

  it('is any port of the pods of a headless Service that declares none', () => {
    const found = addressesOf(serviceOf({ clusterIP: 'None' }), [
      hotelSlice('hotel-1', { endpoints: [endpoint('10.0.0.1'), endpoint('10.0.0.2', { ready: false })], ports: [] }),
    ]);
    assert.deepEqual(found.hosts, ['10.0.0.1']);
  });

  it('is the cluster IP if the setting says so, and the name in DNS of a headless Service', () => {
    const pods = [hotelSlice('hotel-1', { endpoints: [endpoint('10.0.0.1')] })];
    const portsOf = (spec: Spec) =>
      addressesOf(serviceOf({ ...oneHttpPort, ...spec }), pods, 'service').ports[0]?.addresses;
    assert.deepEqual(portsOf({}), ['10.96.0.7:80']);
    assert.deepEqual(portsOf({ clusterIP: 'fd00::7' }), ['[fd00::7]:80']);
    assert.deepEqual(portsOf({ clusterIP: 'None' }), ['hotel.shop.svc:8080']);
  });
});

describe('an address store', () => {
  const pods = (...addresses: string[]) => addresses.map((address) => endpoint(address));
  const portsIn = (found: ReturnType<ReturnType<typeof createAddressStore>['apply']>) =>
    found.map(({ name, addresses }) => [name, addresses?.ports[0]?.addresses]);

  it('reports only the Services whose addresses have changed', () => {
    const store = createAddressStore();
    const services = { present: [serviceOf(), serviceOf(oneHttpPort, 'car')] };
    assert.deepEqual(portsIn(store.apply({ services })), [
      ['hotel', []],
      ['car', []],
    ]);
    const slice = hotelSlice('hotel-1', { endpoints: pods('10.0.0.1') });
    assert.deepEqual(portsIn(store.apply({ slices: { present: [slice] } })), [['hotel', ['10.0.0.1:8080']]]);
    assert.deepEqual(store.apply({ services, slices: { present: [slice] } }), []);
    assert.deepEqual(portsIn(store.apply({ slices: { present: [], gone: [slice] } })), [['hotel', []]]);
  });

  it('keeps slices that arrive before their Service', () => {
    const store = createAddressStore();
    assert.deepEqual(
      store.apply({ slices: { present: [hotelSlice('hotel-1', { endpoints: pods('10.0.0.1') })] } }),
      [],
    );
    assert.deepEqual(portsIn(store.apply({ services: { present: [serviceOf()] } })), [['hotel', ['10.0.0.1:8080']]]);
  });

  it('forgets what a new list lacks', () => {
    const store = createAddressStore();
    const slices = [
      hotelSlice('hotel-1', { endpoints: pods('10.0.0.1') }),
      hotelSlice('hotel-2', { endpoints: pods('10.0.0.2') }),
    ];
    store.apply({ services: { present: [serviceOf(), serviceOf(oneHttpPort, 'car')] }, slices: { present: slices } });
    const found = store.apply({
      services: { present: [serviceOf()], isWhole: true },
      slices: { present: slices.slice(1), isWhole: true },
    });
    assert.deepEqual(portsIn(found).toSorted(), [
      ['car', undefined],
      ['hotel', ['10.0.0.2:8080']],
    ]);
  });

  it('follows a slice that is given to another Service', () => {
    const store = createAddressStore();
    const services = { present: [serviceOf(), serviceOf(oneHttpPort, 'car')] };
    store.apply({ services, slices: { present: [hotelSlice('one', { endpoints: pods('10.0.0.1') })] } });
    const moved = hotelSlice('one', { service: 'car', endpoints: pods('10.0.0.1') });
    const found = store.apply({ slices: { present: [moved] } });
    assert.deepEqual(portsIn(found), [
      ['hotel', []],
      ['car', ['10.0.0.1:8080']],
    ]);
  });

  it('says after any changes what a new store says about the objects that are left', () => {
    const hosts = ['10.0.0.1', '10.0.0.2', '10.0.0.3'];
    const flag = fc.constantFrom(undefined, null, true, false);
    const port = fc.record({
      name: fc.constantFrom('http', 'admin', ''),
      port: fc.constantFrom(80, 81),
      protocol: fc.constantFrom('TCP', 'UDP'),
    });
    const service = fc
      .record({
        name: fc.constantFrom('hotel', 'car'),
        ports: fc.array(port, { maxLength: 2 }),
        clusterIP: fc.constantFrom('10.96.0.7', 'None'),
      })
      .map(({ name, ...spec }) => serviceOf(spec, name));
    const slice = fc
      .record({
        name: fc.constantFrom('a', 'b', 'c'),
        service: fc.constantFrom('hotel', 'car'),
        endpoints: fc.array(
          fc
            .record({ address: fc.constantFrom(...hosts), ready: flag, serving: flag, terminating: flag })
            .map(({ address, ready, serving, terminating }) => ({
              addresses: [address],
              conditions: Object.fromEntries(
                Object.entries({ ready, serving, terminating }).filter(([, value]) => value !== undefined),
              ),
            })),
          { maxLength: 4 },
        ),
        ports: fc.array(port, { maxLength: 2 }),
      })
      .map(({ name, ...rest }) => hotelSlice(name, rest));
    const step: fc.Arbitrary<AddressChanges> = fc.record({
      services: fc.record({
        present: fc.uniqueArray(service, { maxLength: 2, selector: nameOf }),
        gone: fc.array(service, { maxLength: 1 }),
        isWhole: fc.boolean(),
      }),
      slices: fc.record({
        present: fc.uniqueArray(slice, { maxLength: 3, selector: nameOf }),
        gone: fc.array(slice, { maxLength: 1 }),
        isWhole: fc.boolean(),
      }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 6 }), (steps) => {
        const store = createAddressStore();
        const [services, slices] = [new Map<string, ServiceObject>(), new Map<string, EndpointSliceObject>()];
        let seen: Readonly<Record<string, unknown>> = {};
        for (const one of steps) {
          const found = store.apply(one).map(({ name, addresses }) => [name, addresses?.ports] as const);
          seen = { ...seen, ...Object.fromEntries(found) };
          follow(services, one.services);
          follow(slices, one.slices);
          const left = [...slices.values()];
          const expected = [...services.values()].map((service) => [nameOf(service), naivePorts(service, left)]);
          const known = Object.entries(seen).filter(([, ports]) => ports !== undefined);
          assert.deepEqual(Object.fromEntries(known), Object.fromEntries(expected));
        }
      }),
      { numRuns: 300 },
    );
  });
});

function nameOf({ metadata }: { readonly metadata: { readonly name?: string } }): string {
  return metadata.name ?? '';
}

type Changed<T> = {
  readonly present: readonly T[];
  readonly gone?: readonly { readonly metadata: { readonly name?: string } }[];
  readonly isWhole?: boolean;
};

function follow<T extends { readonly metadata: { readonly name?: string } }>(
  objects: Map<string, T>,
  changes: Changed<T> | undefined,
): void {
  if (changes?.isWhole === true) objects.clear();
  for (const one of changes?.gone ?? []) objects.delete(nameOf(one));
  for (const one of changes?.present ?? []) objects.set(nameOf(one), one);
}

/** The rule, written without a thought for speed. */
function naivePorts(service: ServiceObject, slices: readonly EndpointSliceObject[]): readonly PortAddresses[] {
  const ports = (service.spec?.ports ?? []).filter((port) => port.protocol !== 'UDP');
  const own = slices.filter(({ metadata }) => metadata.labels?.['kubernetes.io/service-name'] === nameOf(service));
  return ports.map(({ name = '', port }) => {
    const all = own.flatMap((slice) =>
      (slice.ports ?? [])
        .filter((one) => one.name === name && one.protocol !== 'UDP')
        .flatMap((one) => (slice.endpoints ?? []).map((two) => ({ ...two, text: `${two.addresses[0]}:${one.port}` }))),
    );
    const ready = all.filter(({ conditions }) => conditions?.ready ?? true);
    const draining = all.filter(
      ({ conditions }) => (conditions?.serving ?? true) && (conditions?.terminating ?? false),
    );
    const found = ready.length > 0 ? ready : draining;
    return { name, port, addresses: [...new Set(found.map(({ text }) => text))].sort() };
  });
}
