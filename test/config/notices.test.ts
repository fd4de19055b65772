/** Tests which modules a configuration starts, and the notices about a valid configuration. */
import assert from 'node:assert/strict';
import {
  type ConfigurationRecords,
  configurationFrom,
  type DescriptorInput,
  type MappingInput,
  type NoticeContext,
  openRouteNotices,
  processNotices,
} from '#config';
import { formatSource } from '#foundation';
import { chooseModules, type ModuleName, moduleFacts } from '#server/product';
import { matchNotices } from '../../src/config/match-notices.ts';
import { annRecord, authRecord, limitRecord, mappingRecord } from '../support/desks.ts';
import { gatewayRouteOf } from '../support/edge.ts';
import { createKey, providerRecord } from '../support/tokens.ts';
import { untyped } from '../support/untyped.ts';

const guarded = [mappingRecord('app', '/', 'http://127.0.0.1:3000'), authRecord, limitRecord];

function read(records: readonly object[], more: object = {}) {
  const { configuration, errors } = configurationFrom(untyped({ records, users: [annRecord], ...more }));
  assert.deepEqual(errors, []);
  return configuration;
}

const byDefault = { serviceAddresses: {}, kubernetes: false };

describe('chooseModules', () => {
  for (const [what, records, expected] of [
    ['only the gateway for remote services', [mappingRecord('app', '/', 'http://hotel')], ['gateway']],
    ['the auth service and limiter that records name', guarded, ['gateway', 'auth', 'ratelimit']],
    ['the services that mappings name', [mappingRecord('h', '/h', 'hotel')], ['gateway', 'hotel']],
    ['no module for a name with a port', [mappingRecord('h', '/h', 'hotel:80')], ['gateway']],
    ['no module whose address is in the settings', [mappingRecord('c', '/c', 'car')], ['gateway']],
    ['no module for a redirect', [mappingRecord('h', '/h', 'hotel', { host_redirect: true })], ['gateway']],
    ['no limiter for a mapping', [mappingRecord('r', '/r', 'ratelimit')], ['gateway']],
  ] as const)
    it(`chooses ${what}`, () => {
      assert.deepEqual(
        chooseModules({}, read(records), { serviceAddresses: { car: '127.0.0.1:9' }, kubernetes: false }),
        expected,
      );
    });

  it('chooses all modules for the demo, and always only those in `only`', () => {
    assert.equal(chooseModules({ demo: true }, read([]), byDefault).length, 6);
    assert.deepEqual(chooseModules({ only: ['auth'], demo: true }, read(guarded), byDefault), ['auth']);
  });
});

interface NoticeOptions extends ConfigurationRecords {
  readonly trustedProxies: readonly string[];
  readonly settings: Partial<NoticeContext['settings']>;
}

describe('a Mapping that is refused', () => {
  const configuration = read([mappingRecord('h', '/h', 'hotel')]);
  const mappings = configuration.mappings.map((mapping) => ({ ...mapping, refusal: 'Mapping shop/h is refused' }));
  const refused = { ...configuration, mappings };

  it('names no module', () => assert.deepEqual(chooseModules({}, refused, byDefault), ['gateway']));

  it('is not open', () => assert.deepEqual(openRouteNotices(refused), []));
});

describe('a route of the Gateway API that is open', () => {
  it('can be so on purpose by a RoutePolicy', () => {
    const configuration = read([mappingRecord('h', '/h', 'hotel')]);
    const mappings = configuration.mappings.map((mapping) => ({ ...mapping, gatewayRoute: gatewayRouteOf() }));
    const [notice] = openRouteNotices({ ...configuration, mappings });
    assert.match(notice?.remedy ?? '', /set bypass_auth: true in .*RoutePolicies of the routes/);
  });
});

describe('processNotices', () => {
  const all: readonly ModuleName[] = ['gateway', 'auth', 'ratelimit'];

  async function noticesOf(
    records: readonly object[],
    modules: readonly ModuleName[],
    isChosen = false,
    { trustedProxies = [], settings = {}, ...more }: Partial<NoticeOptions> = {},
    limiterFailsClosed = false,
  ) {
    const context = {
      ...moduleFacts(modules),
      isChosen,
      settings: {
        serviceAddresses: { car: '127.0.0.1:9' },
        adminUsers: [],
        host: '127.0.0.1',
        port: 8080,
        kubernetes: false,
        ...settings,
      },
      trustedProxies,
      limiterFailsClosed,
      directory: 'config',
    };
    const notices = await processNotices(read(records, more), context);
    return notices.map(({ source, record, message, remedy }) =>
      [formatSource(source), record, message, remedy].join(' | '),
    );
  }

  function check(what: string, found: () => Promise<readonly string[]>, ...expected: readonly RegExp[]): void {
    it(`returns ${expected.length === 0 ? 'nothing' : 'a notice'} for ${what}`, async () => {
      const notices = await found();
      assert.equal(notices.length, expected.length, notices.join('\n'));
      for (const [index, pattern] of expected.entries()) assert.match(notices[index] ?? '', pattern);
    });
  }

  check('a configuration whose modules all run here', () => noticesOf(guarded, all));
  check(
    'a limiter of this process that fails closed although its record does not say so',
    () => noticesOf(guarded, all, false, {}, true),
    /RateLimitService limits \| RATELIMIT_FAIL_OPEN=false takes precedence over failure_mode_deny: false, so limited requests get 503 .*failure_mode_deny: true/,
  );
  check('a limiter that fails closed as its record says', () =>
    noticesOf([...guarded.slice(0, 2), { ...limitRecord, failure_mode_deny: true }], all, false, {}, true),
  );
  check(
    'an auth service without users',
    () => noticesOf(guarded, all, false, { users: [] }),
    /^config\/users\.yaml \| {2}\| the auth service in this process has no users.*frontdesk users add NAME$/,
  );
  check(
    'labels without a rate-limit service, only once',
    () => {
      const labels = { gateway: [{ by_address: ['remote_address'] }] };
      const labelled = (name: string) => mappingRecord(name, `/${name}`, 'http://a', { labels });
      return noticesOf([labelled('a'), labelled('b'), mappingRecord('c', '/c', 'http://a')], ['gateway']);
    },
    /Mapping a \| labels have no effect because there is no RateLimitService \| Add a RateLimitService/,
  );
  check('missing users when the auth service runs elsewhere', () =>
    noticesOf([mappingRecord('a', '/', 'http://a')], ['gateway'], true, { users: [] }),
  );
  check(
    'an auth service and a rate-limit service that do not run here',
    () => noticesOf(guarded, ['gateway'], true),
    /^<options>:2 \| AuthService auth \| "auth" does not run in this process, so http:\/\/auth is called .*SERVICE_ADDRESSES=auth=/,
    /RateLimitService limits \| "ratelimit" does not run .* grpc:\/\/ratelimit is called/,
  );
  const labelled = (labels: NonNullable<MappingInput['labels']>) => [
    mappingRecord('own', '/own', 'http://127.0.0.1:1', { labels }),
    { ...limitRecord, domain: 'd' },
  ];
  const header = (name: string, more = {}) => ({ [name]: { header: name, ...more } });
  const minute = { rate_limit: { unit: 'minute', requests_per_unit: 1 } } as const;
  const unreachable = (labels: NonNullable<MappingInput['labels']>, ...descriptors: DescriptorInput[]) =>
    noticesOf(labelled(labels), ['gateway', 'ratelimit'], true, { limits: [{ domain: 'd', descriptors }] });
  const inner = { key: 'a', descriptors: [{ key: 'b', value: 'x*', ...minute }] };
  check('limits that labels reach', () => unreachable({ d: [{ g: [header('a'), header('b')] }] }, inner));
  check(
    'a limit that no labels reach, next to those that are reached when a header is missing',
    () =>
      unreachable({ d: [{ g: [header('a', { omit_if_not_present: true }), header('b')] }] }, inner, {
        key: 'b',
        ...minute,
        descriptors: [{ key: 'a', ...minute }],
      }),
    /domain d \| no Mapping has labels that reach b › a \| Compare/,
  );
  check(
    'a mistyped key, for both the limits and the labels',
    () => unreachable({ d: [{ g: [header('user')] }] }, { key: 'usr', ...minute }),
    /Mapping own \| no limit of the domain "d" has the key "user", did you mean "usr"\?/,
    /domain d \| no Mapping has labels that reach usr/,
  );
  check(
    'a mistyped value of a fixed label',
    () => unreachable({ d: [{ g: [{ generic_key: 'free' }] }] }, { key: 'generic_key', value: 'fre', ...minute }),
    /no Mapping has labels that reach generic_key \|/,
  );
  check(
    'a limit for a host with a port, which labels never contain',
    () => unreachable({ d: [{ g: [header(':authority')] }] }, { key: ':authority', value: 'a.example:81', ...minute }),
    /no Mapping has labels that reach :authority \|/,
  );
  check('a limit for a host in the spelling of the label', () =>
    unreachable({ d: [{ g: [header(':authority')] }] }, { key: ':authority', value: 'a.example', ...minute }),
  );
  check(
    'a domain that the gateway does not use',
    () =>
      noticesOf(labelled({ dd: [{ g: [header('a')] }] }), ['gateway', 'ratelimit'], true, {
        limits: [{ domain: 'e', descriptors: [inner] }],
      }),
    /labels are for the domain "dd", which has no limits here/,
    /domain e \| the gateway uses the domain "d", never this one/,
  );
  check('limits in a process without the gateway', () =>
    noticesOf(labelled({}), ['ratelimit'], true, { limits: [{ domain: 'e', descriptors: [inner] }] }),
  );
  check('a module whose address is known', () => noticesOf([mappingRecord('c', '/c', 'car')], ['gateway']));
  check('services that do not run here, in a process without the gateway', () => noticesOf(guarded, ['auth'], true));
  check(
    'a gateway without mappings',
    () => noticesOf([], ['gateway']),
    /^config\/services .* there is no Mapping.*frontdesk init/,
  );
  const inCluster = { settings: { kubernetes: true }, users: [] };
  check(
    'a cluster without Mappings',
    () => noticesOf([], all, true, inCluster),
    /^the cluster .* there is no Mapping.*frontdesk crds/,
  );
  check('no users in a cluster whose records name another auth service', () =>
    noticesOf([mappingRecord('a', '/', 'http://b'), { ...authRecord, auth_service: 'http://c' }], all, true, inCluster),
  );
  check(
    'no users in a cluster whose records name the auth service of this process',
    () => noticesOf([mappingRecord('a', '/', 'http://b'), authRecord], all, true, inCluster),
    /users\.yaml .* no users/,
  );
  const own = [mappingRecord('shop', '/shop', 'api'), mappingRecord('more', '/more', 'api')];
  check(
    'a service with the name of a demo service, only once',
    () => noticesOf(own, ['gateway', 'api']),
    /Mapping shop \| "api" is a service of the demo.*http:\/\/api .*--demo/,
  );
  check('a demo service when modules were selected by an option', () => noticesOf(own, ['gateway', 'api'], true));
  check('a demo service when the configuration has demo data', () =>
    noticesOf(own, ['gateway', 'api'], false, { demo: { accounts: [] } }),
  );

  const remote = (name: string, prefix: string, fields: object = {}) =>
    mappingRecord(name, prefix, 'http://a', { bypass_auth: true, ...fields });
  const reading = remote('a', '/', {
    headers: { 'X-Client-IP': true },
    labels: { gateway: [{ g: [{ c: { header: 'CF-Connecting-IP' } }] }] },
  });
  const asked = { ...authRecord, auth_service: 'http://b', allowed_request_headers: ['X-Real-IP', 'X-Api-Key'] };
  check(
    'headers that mappings and auth services read, but that are removed from requests',
    () => noticesOf([reading, asked, limitRecord], ['gateway', 'ratelimit'], true),
    /Mapping a \| reads the header "x-client-ip", which is removed.*List it in keep_request_headers.*TRUSTED_PROXIES/,
    /Mapping a \| reads the header "cf-connecting-ip"/,
    /AuthService auth \| reads the header "x-real-ip"/,
    /no limit of the domain|labels are for the domain/,
  );
  const keeping = remote('k', '/k', {
    keep_request_headers: ['X-Client-IP', 'X-Real-IP'],
    headers: { 'X-Client-IP': true },
  });
  check('headers that mappings keep', () => noticesOf([keeping, asked], ['gateway']));
  check('headers that a trusted proxy may set', () =>
    noticesOf([remote('a', '/', { headers: { 'X-Client-IP': true } })], ['gateway'], false, {
      trustedProxies: ['10.0.0.1'],
    }),
  );

  const identities = [
    { ...authRecord, auth_service: 'http://b', allowed_authorization_headers: ['X-Team'] },
    { ...providerRecord([createKey('EdDSA', 'ed')]), claim_to_headers: [{ claim: 'email', header: 'X-Email' }] },
  ];
  const stickyBy = (header: string) => remote('a', '/', { sticky: { header }, weight: 10 });
  for (const header of ['X-Team', 'X-Email'])
    check(
      `sticky by ${header}, which is set after the mapping is chosen`,
      () => noticesOf([stickyBy(header), remote('b', '/', { sticky: { header } }), ...identities], ['gateway']),
      /JwtProvider accounts \| no AuthService accepts its tokens/,
      /Mapping a \| sticky reads the header "x-(?:team|email)", which is not known when the mapping is chosen/,
      /Mapping b \| sticky reads/,
    );

  const ofHost = remote('site', '/', { host: 'site.example' });
  check(
    'a prefix on any host that takes paths of a mapping with a host',
    () =>
      noticesOf([ofHost, remote('below', '/shop', { hostname: '*.example' }), remote('api', '/shop/api')], ['gateway']),
    /Mapping api \| takes the paths below "\/shop\/api" on the host of Mapping below too, because its prefix is longer/,
  );
  it('does not report a prefix on any host beside the host of a route of the Gateway API, which comes first', () => {
    const configuration = read([ofHost, remote('api', '/api')]);
    const mappings = configuration.mappings.map((mapping) => ({ ...mapping, gatewayRoute: gatewayRouteOf() }));
    assert.equal(matchNotices(configuration, false).length, 1);
    assert.deepEqual(matchNotices({ ...configuration, mappings }, false), []);
  });
  check('a prefix on any host beside other paths, another precedence or the same prefix', () =>
    noticesOf(
      [
        remote('shop', '/shop', { host: 'shop.example' }),
        remote('api', '/api'),
        remote('shops', '/shops'),
        remote('same', '/shop'),
        remote('first', '/shop/first', { precedence: 1 }),
      ],
      ['gateway'],
    ),
  );

  const withSettings = (settings: NoticeOptions['settings'], records: readonly object[] = guarded) =>
    noticesOf(records, all, false, { settings });
  check(
    'an address of a name that no record names',
    () =>
      withSettings({ serviceAddresses: { ordesr: '10.0.0.1:80', orders: '10.0.0.2:80' } }, [
        remote('orders', '/orders', { service: 'http://orders' }),
      ]),
    /^<settings> \| {2}\| SERVICE_ADDRESSES contains "ordesr", which no record names, did you mean "orders"\? \| Correct/,
  );
  check('an address of a module that no record names', () =>
    withSettings({ serviceAddresses: { hotel: '10.0.0.1:80', ratelimit: '10.0.0.1:81' } }),
  );
  check('an address of the host of an auth service or a rate-limit service', () =>
    noticesOf(
      [
        mappingRecord('a', '/', 'http://a'),
        { ...authRecord, auth_service: 'http://login:1' },
        { ...limitRecord, service: 'grpc://limits' },
      ],
      ['gateway'],
      true,
      { settings: { serviceAddresses: { login: '10.0.0.1:80', limits: '10.0.0.1:81' } } },
    ),
  );
  check(
    'a name that is nearly that of a module or of a service with an address',
    () =>
      noticesOf(
        [
          remote('orders', '/orders', { service: 'ordres' }),
          remote('host', '/host', { service: 'http://ordres' }),
          remote('other', '/other', { service: 'stock' }),
          remote('known', '/known', { service: 'orders' }),
          { ...authRecord, auth_service: 'auht' },
        ],
        ['gateway'],
        false,
        { settings: { serviceAddresses: { orders: '10.0.0.1:80' } } },
      ),
    /Mapping orders \| calls the host "ordres", did you mean "orders"\? \| Correct the name, or write http:\/\/ordres for a host/,
    /AuthService auth \| calls the host "auht", did you mean "auth"\?/,
  );
  check(
    'an administrator who is no user',
    () => withSettings({ adminUsers: ['ann', 'annn', 'bob'] }),
    /^<settings> \| {2}\| ADMIN_USERS contains "annn", and no user has this name, did you mean "ann"\? \| Correct/,
    /ADMIN_USERS contains "bob", and no user has this name \|/,
  );
  check('administrators whose names come from another auth service', () =>
    withSettings({ adminUsers: ['bob'] }, [
      guarded[0] ?? {},
      { ...authRecord, auth_service: 'http://login' },
      limitRecord,
    ]),
  );
  check(
    'a mapping and an auth service that call the gateway itself',
    () =>
      noticesOf(
        [remote('own', '/', { service: 'localhost:8080' }), { ...authRecord, auth_service: 'http://127.0.0.1:8080' }],
        ['gateway'],
      ),
    /Mapping own \| calls the gateway itself, which listens on port 8080 \| Write the port of the service, or set another PORT/,
    /AuthService auth \| calls the gateway itself/,
  );
  check(
    'a mapping that calls the gateway itself by a name, on all addresses of this machine',
    () =>
      noticesOf([remote('own', '/', { service: 'http://me' })], ['gateway'], false, {
        settings: { host: '::', port: 90, serviceAddresses: { me: ['10.0.0.1:90', '127.0.0.2:90'] } },
      }),
    /Mapping own \| calls the gateway itself, which listens on port 90/,
  );
  check('a mapping to another port or machine, or a redirect to the own port', () =>
    noticesOf(
      [
        remote('port', '/a', { service: 'http://127.0.0.1:8081' }),
        remote('machine', '/b', { service: 'http://10.0.0.1:8080' }),
        mappingRecord('redirect', '/c', 'http://127.0.0.1:8080', { host_redirect: true }),
      ],
      ['gateway'],
    ),
  );
  check(
    'a star at the end of a prefix, which matches no other text',
    () =>
      noticesOf(
        [
          remote('below', '/below/*'),
          remote('exact', '/exact*', { prefix_exact: true }),
          remote('regex', '/regex/.*', { prefix_regex: true }),
          remote('inside', '/a*b'),
        ],
        ['gateway'],
      ),
    /Mapping below \| matches a literal "\*" at the end of "\/below\/\*", .* \| Write prefix: \/below, which matches everything below it/,
    /Mapping exact \| matches a literal "\*" .* \| Remove prefix_exact and the star/,
  );

  check(
    'prefixes of gRPC that end within the name of a service',
    () =>
      noticesOf(
        [
          remote('package', '/shop.v1.', { grpc: true }),
          remote('service', '/shop.v1.Carts', { grpc: true }),
          remote('regex', '/shop\\.', { grpc: true, prefix_regex: true }),
          remote('plain', '/plain.'),
        ],
        ['gateway'],
      ),
    /Mapping package \| matches no gRPC call, because "\/shop\.v1\." .* \| Write .* \/shop\.v1\.Service, or prefix: \/shop\\\.v1\\\.\[\^\/\]\+\/\.\* with prefix_regex/,
  );
});
