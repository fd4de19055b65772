/** Which modules a configuration asks for, and what is odd about it in the process that runs it. */
import assert from 'node:assert/strict';
import { chooseModules, configurationFrom, finish, type ModuleName, processNotices } from '#config';
import { annRecord, authRecord, limitRecord, mappingRecord } from '../support/desks.ts';

const guarded = [mappingRecord('app', '/', 'http://127.0.0.1:3000'), authRecord, limitRecord];

function read(records: readonly object[], more: object = {}) {
  const { configuration, errors } = configurationFrom({ records, users: [annRecord], ...more });
  assert.deepEqual(errors, []);
  return configuration;
}

describe('chooseModules', () => {
  for (const [what, records, expected] of [
    ['the gateway alone for services elsewhere', [mappingRecord('app', '/', 'http://hotel')], ['gateway']],
    ['auth and limiter that records name', guarded, ['gateway', 'auth', 'ratelimit']],
    ['services that mappings name', [mappingRecord('h', '/h', 'hotel')], ['gateway', 'hotel']],
    ['nothing for a port', [mappingRecord('h', '/h', 'hotel:80')], ['gateway']],
    ['nothing for an address in the settings', [mappingRecord('c', '/c', 'car')], ['gateway']],
    ['nothing for a redirect', [mappingRecord('h', '/h', 'hotel', { host_redirect: true })], ['gateway']],
    ['no limiter for a mapping', [mappingRecord('r', '/r', 'ratelimit')], ['gateway']],
  ] as const)
    it(`gives ${what}`, () => {
      assert.deepEqual(chooseModules({}, read(records), { car: '127.0.0.1:9' }), expected);
    });

  it('gives all for the demo, and what `only` names in any case', () => {
    assert.equal(chooseModules({ demo: true }, read([]), {}).length, 6);
    assert.deepEqual(chooseModules({ only: ['auth'], demo: true }, read(guarded), {}), ['auth']);
  });
});

describe('processNotices', () => {
  const all: readonly ModuleName[] = ['gateway', 'auth', 'ratelimit'];

  function noticesOf(records: readonly object[], modules: readonly ModuleName[], isChosen = false, more: object = {}) {
    const context = { modules, isChosen, serviceAddresses: { car: '127.0.0.1:9' }, directory: 'config' };
    return finish(processNotices(read(records, more), context)).map(({ source, record, message, remedy }) =>
      [`${source.file}:${source.line}`, record, message, remedy].join(' | '),
    );
  }

  function check(what: string, found: () => readonly string[], ...expected: readonly RegExp[]): void {
    it(`${expected.length === 0 ? 'says nothing' : 'speaks'} of ${what}`, () => {
      const notices = found();
      assert.equal(notices.length, expected.length, notices.join('\n'));
      for (const [index, pattern] of expected.entries()) assert.match(notices[index] ?? '', pattern);
    });
  }

  check('a configuration that runs whole', () => noticesOf(guarded, all));
  check(
    'an auth service without users',
    () => noticesOf(guarded, all, false, { users: [] }),
    /^config\/users\.yaml:1 \| {2}\| the auth service of this process has no users.*frontdesk users add NAME$/,
  );
  check(
    'labels that no service counts, once',
    () => {
      const labels = { gateway: [{ by_address: ['remote_address'] }] };
      const labelled = (name: string) => mappingRecord(name, `/${name}`, 'http://a', { labels });
      return noticesOf([labelled('a'), labelled('b'), mappingRecord('c', '/c', 'http://a')], ['gateway']);
    },
    /Mapping a \| labels are not counted, since there is no RateLimitService \| Write a RateLimitService/,
  );
  check('missing users where auth is elsewhere', () =>
    noticesOf([mappingRecord('a', '/', 'http://a')], ['gateway'], true, { users: [] }),
  );
  check(
    'an auth and a rate-limit service that do not run here',
    () => noticesOf(guarded, ['gateway'], true),
    /^<options>:2 \| AuthService auth \| "auth" does not run in this process, so http:\/\/auth is asked .*SERVICE_ADDRESSES=auth=/,
    /RateLimitService limits \| "ratelimit" does not run .* grpc:\/\/ratelimit is asked/,
  );
  const labelled = (labels: object) => [
    mappingRecord('own', '/own', 'http://127.0.0.1:1', { labels }),
    { ...limitRecord, domain: 'd' },
  ];
  const header = (name: string, more = {}) => ({ [name]: { header: name, ...more } });
  const minute = { rate_limit: { unit: 'minute', requests_per_unit: 1 } };
  const unreachable = (labels: object, ...descriptors: object[]) =>
    noticesOf(labelled(labels), ['gateway', 'ratelimit'], true, { limits: [{ domain: 'd', descriptors }] });
  const inner = { key: 'a', descriptors: [{ key: 'b', value: 'x*', ...minute }] };
  check('limits that labels reach', () => unreachable({ d: [{ g: [header('a'), header('b')] }] }, inner));
  check(
    'limits that labels reach when a header is missing, and those beyond them',
    () =>
      unreachable({ d: [{ g: [header('a', { omit_if_not_present: true }), header('b')] }] }, inner, {
        key: 'b',
        ...minute,
        descriptors: [{ key: 'a', ...minute }],
      }),
    /domain d \| no Mapping has labels that reach b › a \| Compare/,
  );
  check(
    'a mistyped key, in the limits and in the labels',
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
    'a host with a port, which the label of a host never has',
    () => unreachable({ d: [{ g: [header(':authority')] }] }, { key: ':authority', value: 'a.example:81', ...minute }),
    /no Mapping has labels that reach :authority \|/,
  );
  check('a host, in the spelling that its label has', () =>
    unreachable({ d: [{ g: [header(':authority')] }] }, { key: ':authority', value: 'a.example', ...minute }),
  );
  check(
    'a domain that the gateway does not ask for',
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
  check('them in a process without the gateway', () => noticesOf(guarded, ['auth'], true));
  check(
    'a gateway without mappings',
    () => noticesOf([], ['gateway']),
    /^config\/services:1 .* there is no Mapping.*frontdesk init/,
  );
  const own = [mappingRecord('shop', '/shop', 'api'), mappingRecord('more', '/more', 'api')];
  check(
    "a service that has the name of one of the demo's, once",
    () => noticesOf(own, ['gateway', 'api']),
    /Mapping shop \| "api" is a service of the demo.*http:\/\/api .*--demo/,
  );
  check('it where the demo was asked for', () => noticesOf(own, ['gateway', 'api'], true));
  check('it where the configuration has demo data', () =>
    noticesOf(own, ['gateway', 'api'], false, { demo: { accounts: [] } }),
  );
});
