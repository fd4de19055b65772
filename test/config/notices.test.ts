/** Which modules a configuration asks for, and what is odd about it in the process that runs it. */
import assert from 'node:assert/strict';
import { chooseModules, configurationFrom, type ModuleName, processNotices } from '#config';
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
    return processNotices(read(records, more), context).map(({ source, record, message, remedy }) =>
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
  check('missing users where auth is elsewhere', () =>
    noticesOf([mappingRecord('a', '/', 'http://a')], ['gateway'], true, { users: [] }),
  );
  check(
    'an auth and a rate-limit service that do not run here',
    () => noticesOf(guarded, ['gateway'], true),
    /^<options>:2 \| AuthService auth \| "auth" does not run in this process, so http:\/\/auth is asked .*SERVICE_ADDRESSES=auth=/,
    /RateLimitService limits \| "ratelimit" does not run .* grpc:\/\/ratelimit is asked/,
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
