/** What goes into force of a configuration that is broken in part. */
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import {
  type Configuration,
  type ConfigurationError,
  keepLastGood,
  loadConfiguration,
  type Mapping,
  type Version,
} from '#config';
import { authRecordOf, limitRecordOf, mappingOf } from '../support/edge.ts';

const directory = '/etc/frontdesk';
const settings = { host: '127.0.0.1', allowDemoUsers: false };

function mapping(name: string, file: string, fields: Partial<Mapping> = {}): Mapping {
  return mappingOf({ name, prefix: `/${name}`, source: { file: `${directory}/services/${file}`, line: 1 }, ...fields });
}

function configurationOf(fields: Partial<Configuration> = {}): Configuration {
  return {
    mappings: [],
    authServices: [],
    rateLimitServices: [],
    versions: [],
    limits: [],
    users: [],
    demo: {},
    blocked: [],
    ...fields,
  };
}

function errorAt(file: string, record?: string): ConfigurationError {
  return { source: { file, line: 1 }, record, message: 'is broken', remedy: 'Mend it.' };
}

function kept(now: Configuration, before: Configuration, ...errors: ConfigurationError[]) {
  return keepLastGood({ configuration: now, errors, notices: [] }, before, { directory, settings, refused: () => [] });
}

const namesOf = ({ configuration }: { configuration: Configuration }) =>
  configuration.mappings.map(({ name, rewrite }) => `${name}${rewrite === '/' ? '' : rewrite}`).sort();

describe('keepLastGood', () => {
  const a = mapping('a', 'x.yaml');
  const b = mapping('b', 'x.yaml');
  const c = mapping('c', 'y.yaml');
  const before = configurationOf({ mappings: [a, b, c] });
  const x = `${directory}/services/x.yaml`;

  it('takes what is good, and drops what is gone', () => {
    const now = configurationOf({ mappings: [mapping('a', 'x.yaml', { rewrite: '/new' })] });
    assert.deepEqual(namesOf(kept(now, before)), ['a/new']);
  });

  it('keeps a broken record as it was, wherever it stands now', () => {
    const now = configurationOf({ mappings: [b] });
    assert.deepEqual(namesOf(kept(now, before, errorAt(x, 'Mapping a'))), ['a', 'b']);
    assert.deepEqual(namesOf(kept(now, before, errorAt(`${directory}/services/z.yaml`, 'Mapping a'))), ['a', 'b']);
  });

  it('leaves out a broken record that was not there before', () => {
    assert.deepEqual(namesOf(kept(configurationOf(), configurationOf(), errorAt(x, 'Mapping a'))), []);
  });

  it('keeps what is gone from a file in which a broken record has a new name: it may be the same one', () => {
    const now = configurationOf({ mappings: [b] });
    assert.deepEqual(namesOf(kept(now, before, errorAt(x, 'Mapping renamed'))), ['a', 'b']);
    assert.deepEqual(namesOf(kept(now, before, errorAt(x, 'Mapping b'))), ['b']);
  });

  it('takes the good record of a name over the broken one', () => {
    const now = configurationOf({ mappings: [mapping('a', 'y.yaml', { rewrite: '/new' })] });
    assert.deepEqual(namesOf(kept(now, before, errorAt(x, 'Mapping a'))), ['a/new']);
  });

  it('keeps all records of a file, of a manifest in it, or of a directory that cannot be read', () => {
    const now = configurationOf({ mappings: [c] });
    assert.deepEqual(namesOf(kept(now, before, errorAt(x))), ['a', 'b', 'c']);
    assert.deepEqual(namesOf(kept(now, before, errorAt(x, 'Service hotel'))), ['a', 'b', 'c']);
    assert.deepEqual(namesOf(kept(configurationOf(), before, errorAt(`${directory}/services`))), ['a', 'b', 'c']);
    assert.deepEqual(namesOf(kept(configurationOf(), before, errorAt(directory))), ['a', 'b', 'c']);
    assert.deepEqual(namesOf(kept(now, before, errorAt(`${directory}/services/x.yml`))), ['c']);
  });

  it('gives a place that a good record has taken to that one, and says so', () => {
    const now = configurationOf({ mappings: [mapping('new', 'y.yaml', { prefix: '/a' })] });
    const good = kept(now, before, errorAt(x, 'Mapping a'));
    assert.deepEqual(namesOf(good), ['new']);
    assert.deepEqual(
      good.errors.map(({ record }) => record),
      ['Mapping a', 'Mapping a'],
    );
  });

  it('keeps the auth service when its record breaks, and lets it go when it is gone', () => {
    const guarded = configurationOf({ authServices: [authRecordOf({ source: a.source })] });
    assert.equal(kept(configurationOf(), guarded, errorAt(x, 'AuthService auth')).configuration.authServices.length, 1);
    assert.equal(kept(configurationOf(), guarded).configuration.authServices.length, 0);
  });

  it('keeps who lets in and how often while it may be meant by a record that is broken, whatever that is called now', () => {
    const guards = {
      authServices: [authRecordOf({ source: a.source })],
      rateLimitServices: [limitRecordOf({ source: a.source })],
    };
    const count = (...errors: ConfigurationError[]) => {
      const { authServices, rateLimitServices } = kept(
        configurationOf(),
        configurationOf(guards),
        ...errors,
      ).configuration;
      return [authServices.length, rateLimitServices.length];
    };
    const y = `${directory}/services/y.yaml`;
    assert.deepEqual(count(errorAt(y, 'AuthService renamed')), [1, 1]);
    assert.deepEqual(count(errorAt(y)), [1, 1]);
    assert.deepEqual(count(errorAt(y, 'Mapping a')), [0, 0]);
    assert.deepEqual(count(errorAt(y, 'Version v1')), [0, 0]);
    assert.deepEqual(count(errorAt(`${directory}/ratelimit/d.yaml`)), [0, 0]);
  });

  it('keeps a broken version as it was, and none that is gone for what is wrong with an auth service', () => {
    const version: Version = {
      ...{ kind: 'Version', name: 'v1', prefix: '/v1', source: a.source },
      ...{ deprecatedAtMs: 0, endsAtMs: undefined, successor: undefined, info: undefined },
    };
    const names = (...errors: ConfigurationError[]) =>
      kept(configurationOf(), configurationOf({ versions: [version] }), ...errors).configuration.versions.map(
        ({ name }) => name,
      );
    assert.deepEqual(names(errorAt(`${directory}/services/z.yaml`, 'Version v1')), ['v1']);
    assert.deepEqual(names(errorAt(x)), ['v1']);
    assert.deepEqual(names(errorAt(`${directory}/services/y.yaml`, 'AuthService auth')), []);
    assert.deepEqual(names(), []);
  });

  it('takes limits whole or not at all, whatever the records say', () => {
    const limits = (domain: string) => [{ domain, descriptors: [], source: a.source }];
    const domains = (...errors: ConfigurationError[]) =>
      kept(configurationOf({ limits: limits('new') }), configurationOf({ limits: limits('old') }), ...errors)
        .configuration.limits[0]?.domain;
    assert.equal(domains(), 'new');
    assert.equal(domains(errorAt(x, 'Mapping a')), 'new');
    assert.equal(domains(errorAt(`${directory}/ratelimit/d.yaml`, 'domain new')), 'old');
    assert.equal(domains(errorAt(directory)), 'old');
  });

  it('keeps a user whose line is broken, and nobody else who is gone', () => {
    const user = (name: string) => ({ name, passwordHash: 'x' });
    const users = (...errors: ConfigurationError[]) =>
      kept(
        configurationOf({ users: [user('new')] }),
        configurationOf({ users: [user('ann'), user('bob')] }),
        ...errors,
      ).configuration.users.map(({ name }) => name);
    const file = `${directory}/users.yaml`;
    assert.deepEqual(users(), ['new']);
    assert.deepEqual(users(errorAt(file, 'User ann')), ['new', 'ann']);
    assert.deepEqual(users(errorAt(file)), ['new', 'ann', 'bob']);
    assert.deepEqual(users(errorAt(file, 'User')), ['new']);
  });

  it('leaves out records that this process cannot serve, and keeps what was in force in their place', () => {
    const now = configurationOf({
      mappings: [mapping('a', 'x.yaml', { rewrite: '/new' }), b],
      authServices: [authRecordOf()],
    });
    const refused = ({ mappings }: Configuration) =>
      mappings.some(({ rewrite }) => rewrite === '/new')
        ? [errorAt(x, 'Mapping a'), errorAt(x, 'AuthService auth')]
        : [];
    const good = keepLastGood({ configuration: now, errors: [], notices: [] }, before, {
      directory,
      settings,
      refused,
    });
    assert.deepEqual([namesOf(good), good.configuration.authServices, good.errors.length], [['a', 'b'], [], 2]);
  });

  it('keeps the users in force where the new ones are demo users and the network could reach them', async () => {
    const shipped = await loadConfiguration(fileURLToPath(new URL('../../config', import.meta.url)));
    const users = (host: string) => {
      const policy = { directory, settings: { host, allowDemoUsers: false }, refused: () => [] };
      const good = keepLastGood(shipped, configurationOf({ users: [{ name: 'ann', passwordHash: 'x' }] }), policy);
      return [good.configuration.users.map(({ name }) => name), good.errors.map(({ source }) => source.file)];
    };
    assert.deepEqual(users('127.0.0.1'), [['demo', 'guest'], []]);
    assert.deepEqual(users('0.0.0.0'), [['ann'], [`${directory}/users.yaml`]]);
  });
});
