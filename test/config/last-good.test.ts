/** Tests which configurations a process starts with, and what a reload applies when a part of one is broken. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  type Configuration,
  type ConfigurationError,
  configurationFrom,
  finish,
  keepLastGood,
  loadConfiguration,
  type Mapping,
  mapInParts,
  requireConfiguration,
  requireSettings,
  type Version,
} from '#config';
import { mappingRecord } from '../support/desks.ts';
import { authRecordOf, limitRecordOf, mappingOf } from '../support/edge.ts';

const shippedDirectory = fileURLToPath(new URL('../../config', import.meta.url));
const directory = '/etc/frontdesk';
const settings = { host: '127.0.0.1', allowDemoUsers: false };
const nothing = configurationFrom({ records: [] }).configuration;

/** Returns a source in a file of `services/`. */
const inFile = (name: string) => ({ file: `${directory}/services/${name}`, line: 1 });

function mapping(name: string, file: string, fields: Partial<Mapping> = {}): Mapping {
  return mappingOf({ name, prefix: `/${name}`, source: inFile(file), ...fields });
}

/** Returns an error in a file or folder of the directory. Without a record it concerns the whole file. */
function errorAt(path: string, record?: string): ConfigurationError {
  const file = path === '' ? directory : `${directory}/${path}`;
  return { source: { file, line: 1 }, record, message: 'is broken', remedy: 'Mend it.' };
}

function returning(errors: readonly ConfigurationError[]) {
  return mapInParts(errors, (error) => error);
}

function keep(now: Partial<Configuration>, before: Partial<Configuration>, errors: readonly ConfigurationError[]) {
  const loaded = { configuration: { ...nothing, ...now }, errors, notices: [] };
  return finish(
    keepLastGood(loaded, { ...nothing, ...before }, { directory, settings, findUnservable: () => returning([]) }),
  );
}

const namesOf = ({ configuration }: { readonly configuration: Configuration }) =>
  configuration.mappings.map(({ name, rewrite }) => `${name}${rewrite === '/' ? '' : rewrite}`).sort();

describe('keepLastGood', () => {
  const a = mapping('a', 'x.yaml');
  const b = mapping('b', 'x.yaml');
  const c = mapping('c', 'y.yaml');
  const before = { mappings: [a, b, c] };
  const newA = mapping('a', 'y.yaml', { rewrite: '/new' });
  const newB = mapping('b', 'x.yaml', { rewrite: '/new' });
  const [x, y, z] = ['services/x.yaml', 'services/y.yaml', 'services/z.yaml'] as const;

  type Case = readonly [now: readonly Mapping[], errors: readonly ConfigurationError[], expected: readonly string[]];
  const check = (title: string, ...[now, errors, expected]: Case) =>
    it(title, () => assert.deepEqual(namesOf(keep({ mappings: now }, before, errors)), expected));

  check('applies valid records and drops deleted ones', [newA], [], ['a/new']);
  check('keeps the previous version of a broken record', [b], [errorAt(x, 'Mapping a')], ['a', 'b']);
  check(
    'keeps the previous version even if the broken record moved to another file',
    [b],
    [errorAt(z, 'Mapping a')],
    ['a', 'b'],
  );
  check('drops a new broken record', [], [errorAt(z, 'Mapping new')], []);
  check('keeps a record that may be the broken one under another name', [b], [errorAt(x, 'Mapping new')], ['a', 'b']);
  check('drops a deleted record if the broken one in its file has a known name', [b], [errorAt(x, 'Mapping b')], ['b']);
  check('prefers the valid record of a name to a broken one', [newA], [errorAt(x, 'Mapping a')], ['a/new']);
  check('keeps all records of a broken file', [c], [errorAt(x)], ['a', 'b', 'c']);
  check('keeps all records of a broken manifest', [c], [errorAt(x, 'Service hotel')], ['a', 'b', 'c']);
  check('keeps all records of a folder that cannot be read', [], [errorAt('services')], ['a', 'b', 'c']);
  check('keeps all records of a directory that cannot be read', [], [errorAt('')], ['a', 'b', 'c']);
  check('does not keep records because of a file with a similar name', [c], [errorAt('services/x.yml')], ['c']);

  for (const given of ['config', './config', 'config/', '.', './', '/etc/./config'])
    it(`keeps all records of ${given} if it cannot be read`, () => {
      const source = { file: join(given, 'services/x.yaml'), line: 1 };
      const errors = [{ ...errorAt(''), source: { file: given, line: 0 } }];
      assert.deepEqual(namesOf(keep({}, { mappings: [mappingOf({ name: 'a', source })] }, errors)), ['a']);
    });

  const block = (name: string) => ({ ...mapping(name, 'x.yaml'), isGuard: true });

  it('keeps a record that may have been renamed for as long as its file has an error', () => {
    const reload = (inForce: Partial<Configuration>, ...errors: ConfigurationError[]) => {
      const blocked = errors.map(({ record = '' }) => block(record.replace('Mapping ', '')));
      return keep({ mappings: [b], blocked }, inForce, errors).configuration;
    };
    const namesIn = ({ mappings, blocked }: Configuration) =>
      [...new Set([...mappings, ...blocked].map(({ name }) => name))].sort();
    const first = reload({ mappings: [a, b], blocked: [block('old')] }, errorAt(x, 'Mapping new'));
    const second = reload(first, errorAt(x, 'Mapping new'));
    for (const kept of [first, second, reload(second, errorAt(x, 'Mapping new'))])
      assert.deepEqual(namesIn(kept), ['a', 'b', 'new', 'old']);
    assert.deepEqual(namesIn(reload(second)), ['b']);
    assert.deepEqual(namesIn(reload(second, errorAt(y, 'Mapping new'))), ['b', 'new']);
  });

  it('blocks the requests of a broken record only once after several reloads', () => {
    const at = (line: number) => ({ blocked: [{ ...block('old'), source: { ...a.source, line } }] });
    const once = keep(at(2), at(1), [errorAt(x, 'Mapping old')]).configuration;
    assert.deepEqual(once.blocked, at(2).blocked);
    const elsewhere = { blocked: [{ ...block('old'), prefix: '/new' }] };
    const moved = keep(elsewhere, once, [errorAt(x, 'Mapping old')]).configuration;
    assert.deepEqual(
      moved.blocked.map(({ prefix }) => prefix),
      ['/new', '/old'],
    );
  });

  it('does not serve the requests of a broken guard with a new open mapping, not even after the next reload', () => {
    const blocked = [block('old')];
    const open = { mappings: [mapping('open', 'y.yaml', { prefix: '/old', bypassAuth: true })], blocked };
    const first = keep(open, {}, [errorAt(x, 'Mapping old')]).configuration;
    const second = keep(open, first, [errorAt(x, 'Mapping old')]).configuration;
    for (const kept of [first, second]) assert.deepEqual(kept.blocked, blocked);
  });

  it('drops a deleted record if the broken one in its file was broken before', () => {
    const blocked = [block('old')];
    const good = keep({ mappings: [b], blocked }, { mappings: [a, b], blocked }, [errorAt(x, 'Mapping old')]);
    assert.deepEqual(namesOf(good), ['b']);
  });

  it('routes a path to a new valid record instead of the broken one, and reports the conflict', () => {
    const good = keep({ mappings: [mapping('new', 'y.yaml', { prefix: '/a' })] }, before, [errorAt(x, 'Mapping a')]);
    assert.deepEqual(namesOf(good), ['new']);
    assert.deepEqual(new Set(good.errors.map(({ record }) => record)), new Set(['Mapping a']));
    assert.equal(good.errors.length, 2);
  });

  /** Reads mappings for the same requests, with these fields. */
  const sharing = (...fields: readonly object[]) =>
    configurationFrom({
      records: fields.map((more, index) => mappingRecord(`${index}`, '/a', 'hotel', more)),
    });
  const canaries = sharing({ weight: 90 }, { weight: 10 }).configuration;
  const broken = { weight: 90, timeout_ms: 'soon' };

  for (const [title, inForce, loaded, weights] of [
    [
      'the first mapping, like a start does, if there are too many',
      before,
      sharing({ weight: 60 }, { weight: 60 }),
      [60],
    ],
    [
      'the first mapping, like a start does, if there are too few',
      before,
      sharing({ weight: 80 }, { weight: 10 }),
      [80],
    ],
    ['the last version of the one that breaks the total', canaries, sharing({ weight: 80 }, { weight: 10 }), [80, 10]],
    ['a broken mapping whose canary is removed', canaries, sharing(broken), [90]],
  ] as const)
    it(`serves requests that are shared by weights: ${title}`, () => {
      const { configuration, errors } = keep(loaded.configuration, inForce, loaded.errors);
      assert.deepEqual([configuration.mappings.map(({ weight }) => weight), configuration.blocked], [weights, []]);
      assert.deepEqual(errors, loaded.errors);
    });

  it('keeps deleted AuthServices and RateLimitServices while a broken record may be one of them', () => {
    const guards = {
      authServices: [authRecordOf({ source: a.source })],
      rateLimitServices: [limitRecordOf({ source: a.source })],
    };
    const count = (...errors: ConfigurationError[]) => {
      const { authServices, rateLimitServices } = keep({}, guards, errors).configuration;
      return [authServices.length, rateLimitServices.length];
    };
    for (const error of [errorAt(x, 'AuthService auth'), errorAt(y, 'AuthService renamed'), errorAt(y)])
      assert.deepEqual(count(error), [1, 1]);
    for (const error of [errorAt(y, 'Mapping a'), errorAt(y, 'Version v1'), errorAt('ratelimit/d.yaml')])
      assert.deepEqual(count(error), [0, 0]);
    assert.deepEqual(count(), [0, 0]);
  });

  it('keeps deleted guarded mappings while requests that a broken record protects could be open', () => {
    const open = mapping('open', 'y.yaml', { bypassAuth: true });
    const contained = (name: string) => ({ ...errorAt(z, `Mapping ${name}`), isContained: true });
    for (const [now, error, names] of [
      [[open], errorAt(z), ['a', 'open']],
      [[open], errorAt(z, 'Mapping new'), ['a', 'open']],
      [[], contained('open'), ['a', 'open']],
      [[open], contained('new'), ['open']],
      [[open], errorAt(z, 'AuthService auth'), ['open']],
    ] as const) {
      const authServices = [authRecordOf()];
      const good = keep({ mappings: now, authServices }, { mappings: [a, open], authServices }, [error]);
      assert.deepEqual(namesOf(good), names, error.record);
      assert.deepEqual(namesOf(keep({ mappings: now }, { mappings: [a, open] }, [error])), ['open']);
    }
  });

  it('does not move a guarded mapping while an open mapping that is broken stays', () => {
    const open = mapping('open', 'y.yaml', { bypassAuth: true, prefix: '/' });
    const moved = mapping('a', 'x.yaml', { prefix: '/moved' });
    const authServices = [authRecordOf()];
    const error = { ...errorAt(y, 'Mapping open'), isContained: true };
    const good = keep({ mappings: [moved], authServices }, { mappings: [a, open], authServices }, [error]);
    assert.deepEqual(good.configuration.mappings.map(({ prefix }) => prefix).sort(), ['/', '/a']);
  });

  it('does not apply changed mappings that could be open for requests that a broken record protects', () => {
    const moved = { ...a, source: { ...a.source, line: 9 } };
    const changed = [moved, newB, mapping('open', 'y.yaml', { bypassAuth: true }), mapping('new', 'y.yaml')];
    const all = ['a', 'b/new', 'new', 'open'];
    const contained = { ...errorAt(x, 'Mapping c'), isContained: true };
    // Each row has the mappings that are in use, without and with an AuthService.
    for (const [error, withoutAuth, withAuth] of [
      [errorAt(x, 'AuthService auth'), ['a', 'b', 'open'], all],
      [errorAt(z), ['a', 'b'], ['a', 'b/new', 'new']],
      [errorAt(z, 'Mapping c'), all, ['a', 'b/new', 'new']],
      [contained, all, all],
      [errorAt(x, 'RateLimitService limits'), all, all],
      [errorAt(x, 'Version v1'), all, all],
      [errorAt('users.yaml', 'User ann'), all, all],
    ] as const)
      for (const [authServices, names] of [
        [[], withoutAuth],
        [[authRecordOf()], withAuth],
      ] as const) {
        const good = keep({ mappings: changed, authServices }, { mappings: [a, b] }, [error]);
        assert.deepEqual(namesOf(good), names, error.record);
        assert.deepEqual(
          good.configuration.blocked.map(({ name }) => name).sort(),
          ['new', 'open'].filter((name) => !namesOf(good).includes(name)),
        );
      }
  });

  it('blocks the new requests of a broken record whose previous version stays', () => {
    const blocked = [{ ...block('a'), prefix: '/moved' }];
    const good = keep({ mappings: [b, c], blocked }, before, [errorAt(x, 'Mapping a')]);
    assert.deepEqual([namesOf(good), good.configuration.blocked], [['a', 'b', 'c'], blocked]);
  });

  it('keeps the previous version of a broken Version, and drops a deleted one despite a broken AuthService', () => {
    const unset = { deprecatedAtMs: 0, endsAtMs: undefined, successor: undefined, info: undefined };
    const version: Version = { kind: 'Version', name: 'v1', prefix: '/v1', source: a.source, ...unset };
    const count = (...errors: ConfigurationError[]) =>
      keep({}, { versions: [version] }, errors).configuration.versions.length;
    assert.equal(count(errorAt(z, 'Version v1')), 1);
    assert.equal(count(errorAt(x)), 1);
    assert.equal(count(errorAt(y, 'AuthService auth')), 0);
    assert.equal(count(), 0);
  });

  it('replaces all limits or none, independently of the records', () => {
    const limits = (domain: string) => ({ limits: [{ domain, descriptors: [], source: a.source }] });
    const domain = (...errors: ConfigurationError[]) =>
      keep(limits('new'), limits('old'), errors).configuration.limits[0]?.domain;
    assert.equal(domain(), 'new');
    assert.equal(domain(errorAt(x, 'Mapping a')), 'new');
    assert.equal(domain(errorAt('ratelimit/d.yaml', 'domain new')), 'old');
    assert.equal(domain(errorAt('')), 'old');
  });

  const user = (name: string) => ({ name, passwordHash: 'x', roles: [] });

  it('keeps a broken user and drops deleted ones', () => {
    const names = (...errors: ConfigurationError[]) =>
      keep({ users: [user('new')] }, { users: [user('ann'), user('bob')] }, errors).configuration.users.map(
        ({ name }) => name,
      );
    assert.deepEqual(names(), ['new']);
    assert.deepEqual(names(errorAt('users.yaml', 'User ann')), ['new', 'ann']);
    assert.deepEqual(names(errorAt('users.yaml')), ['new', 'ann', 'bob']);
    assert.deepEqual(names(errorAt('users.yaml', 'User')), ['new']);
  });

  it('drops records that this process cannot serve, and keeps their previous versions', () => {
    const configuration = { ...nothing, mappings: [{ ...newA, source: a.source }, b], authServices: [authRecordOf()] };
    const findUnservable = ({ mappings }: Configuration) => {
      const isNew = mappings.some(({ rewrite }) => rewrite === '/new');
      return returning(isNew ? [errorAt(x, 'Mapping a'), errorAt(x, 'AuthService auth')] : []);
    };
    const policy = { directory, settings, findUnservable };
    const good = finish(keepLastGood({ configuration, errors: [], notices: [] }, { ...nothing, ...before }, policy));
    assert.deepEqual([namesOf(good), good.configuration.authServices, good.errors.length], [['a', 'b'], [], 2]);
  });

  it('keeps the earlier version of demo users, and no other user, if the server is open to the network', async () => {
    const shipped = await loadConfiguration(shippedDirectory);
    const users = (host: string) => {
      const policy = { directory, settings: { host, allowDemoUsers: false }, findUnservable: () => returning([]) };
      const current = { ...nothing, users: [user('ann'), user('demo')] };
      const good = finish(keepLastGood(shipped, current, policy));
      return [
        good.configuration.users.map(({ name, passwordHash }) => [name, passwordHash === 'x']),
        good.errors.map(({ source, record }) => `${source.file} ${record}`),
      ];
    };
    const published = [
      ['demo', false],
      ['guest', false],
    ];
    assert.deepEqual(users('127.0.0.1'), [published, []]);
    const file = `${directory}/users.yaml`;
    assert.deepEqual(users('0.0.0.0'), [[['demo', true]], [`${file} User demo`, `${file} User guest`]]);
  });
});

describe('requireConfiguration', () => {
  it('loads the directory in the settings by default', async () => {
    const nowhere = requireSettings({ configDir: '/nowhere/at/all' });
    await assert.rejects(requireConfiguration(undefined, nowhere), {
      message: /^the configuration has an error:\n\/nowhere\/at\/all {2}the directory cannot be read/,
    });
  });

  it('rejects with all errors, sorted by file and line', async () => {
    const hotel = mappingRecord('hotel', '/v1/hotels', 'hotel');
    const records = [
      { ...hotel, prefix: 'v1' },
      { ...hotel, service: '' },
    ];
    const message =
      /^Error: the configuration has 2 errors:\n<options>:1 {2}Mapping hotel: .*\n.*\n<options>:2 {2}Mapping/;
    await assert.rejects(requireConfiguration({ records }, requireSettings({})), message);
  });

  it('rejects demo users with published passwords on a server that is open to the network', async () => {
    const open = requireSettings({ host: '0.0.0.0' });
    const message = /demo passwords of demo and guest .* HOST=0\.0\.0\.0 .*ALLOW_DEMO_USERS=true/;
    await assert.rejects(requireConfiguration(shippedDirectory, open), message);
    const { configuration } = await requireConfiguration(shippedDirectory, { ...open, allowDemoUsers: true });
    assert.equal(configuration.users.length, 2);
  });
});
