/** Tests which configurations a process starts with, and what a reload accepts and refuses. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  accept,
  type Configuration,
  type ConfigurationError,
  configurationFrom,
  loadConfiguration,
  type Mapping,
  requireConfiguration,
  requireSettings,
} from '#config';
import { settingTable } from '#server/product';
import { mappingRecord } from '../support/desks.ts';
import { mappingOf } from '../support/edge.ts';

const shippedDirectory = fileURLToPath(new URL('../../config', import.meta.url));
const directory = '/etc/frontdesk';
const nothing = configurationFrom({ records: [] }).configuration;

/** Returns an error in a file or folder of the directory. Without a record it concerns the whole file. */
function errorAt(path: string, record?: string, where = directory): ConfigurationError {
  return { source: { file: join(where, path), line: 1 }, record, message: 'is broken', remedy: 'Mend it.' };
}

const mapping = (name: string) => mappingOf({ name, prefix: `/${name}` });
const limits = (domain: string) => [{ domain, descriptors: [], source: { file: 'x', line: 1 } }];
const user = (name: string) => ({ name, passwordHash: 'x', roles: [], apiKeys: [] });

interface Case {
  readonly errors?: readonly ConfigurationError[];
  readonly unservable?: readonly ConfigurationError[];
  readonly host?: string;
  readonly directory?: string;
  readonly now?: Partial<Configuration>;
}

/** Accepts new records, limits and users in place of old ones. */
function acceptNew({ errors = [], unservable = [], host = '127.0.0.1', directory: where = directory, now }: Case) {
  const before = { ...nothing, mappings: [mapping('old')], limits: limits('old'), users: [user('ann'), user('old')] };
  const after = { ...nothing, mappings: [mapping('new')], limits: limits('new'), users: [user('ann'), user('new')] };
  const loaded = { configuration: { ...after, ...now }, errors, notices: [] };
  const policy = {
    directory: where,
    settings: { host, allowDemoUsers: false },
    findUnservable: () => unservable,
  };
  const { configuration, refusals } = accept(loaded, before, policy);
  return {
    mappings: configuration.mappings.map(({ name }: Mapping) => name),
    limits: configuration.limits.map(({ domain }) => domain),
    users: configuration.users.map(({ name }) => name),
    refused: refusals.map(({ part, consequence, errors: found }) => [part, consequence, found.length]),
  };
}

const taken = { mappings: ['new'], limits: ['new'], users: ['ann', 'new'] };
const old = { mappings: ['old'], limits: ['old'] };
const recordsRefused = ['records', 'records and limits stay as they were'] as const;
const usersRefused = ['users', 'users stay as they were'] as const;

describe('accept', () => {
  const check = (title: string, given: Case, expected: object) =>
    it(title, () => assert.deepEqual(acceptNew(given), { ...taken, refused: [], ...expected }));

  check('takes everything if nothing is wrong', {}, {});

  for (const error of [
    errorAt('services/x.yaml', 'Mapping new'),
    errorAt('services/x.yaml'),
    errorAt('services'),
    errorAt('ratelimit/a.yaml', 'domain new'),
    errorAt('demo.yaml'),
    errorAt('service'),
    errorAt('services/users.yaml'),
  ])
    check(
      `leaves all records and limits as they were, and takes the users: an error in ${error.source.file}`,
      { errors: [error] },
      { ...old, refused: [[...recordsRefused, 1]] },
    );

  check(
    'leaves all records and limits as they were if this process cannot serve one of them',
    { unservable: [errorAt('services/x.yaml', 'Mapping new')] },
    { ...old, refused: [[...recordsRefused, 1]] },
  );

  check(
    'takes users without those of broken entries, and the records',
    { errors: [errorAt('users.yaml', 'User new'), errorAt('users.yaml', 'User')] },
    { users: ['ann'], refused: [['users', 'new and a user without a name cannot sign in', 2]] },
  );

  check(
    'leaves the users as they were if their file cannot be read, and takes the records',
    { errors: [errorAt('users.yaml'), errorAt('users.yaml', 'User bob')] },
    { users: ['ann', 'old'], refused: [[...usersRefused, 2]] },
  );

  check('takes no users if their file is gone', { now: { users: [] } }, { users: [] });

  for (const where of ['config', './config', 'config/', '.', './', '/etc/./config'])
    check(
      `leaves everything as it was if ${where} cannot be read`,
      { directory: where, errors: [{ ...errorAt(''), source: { file: where, line: 0 } }] },
      {
        ...old,
        users: ['ann', 'old'],
        refused: [
          [...recordsRefused, 1],
          [...usersRefused, 1],
        ],
      },
    );

  it('leaves demo users out if the server is open to the network', async () => {
    const { users } = (await loadConfiguration(shippedDirectory)).configuration;
    const now = { users: [user('ann'), ...users] };
    assert.deepEqual(acceptNew({ now }), { ...taken, users: ['ann', 'demo', 'guest'], refused: [] });
    assert.deepEqual(acceptNew({ now, host: '0.0.0.0' }), {
      ...taken,
      users: ['ann'],
      refused: [['users', 'demo and guest cannot sign in', 2]],
    });
  });
});

describe('requireConfiguration', () => {
  it('loads the directory in the settings by default', async () => {
    const nowhere = requireSettings(settingTable, { configDir: '/nowhere/at/all' });
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
    await assert.rejects(requireConfiguration({ records }, requireSettings(settingTable, {})), message);
  });

  it('rejects demo users with published passwords on a server that is open to the network', async () => {
    const open = requireSettings(settingTable, { host: '0.0.0.0' });
    const message = /demo passwords of demo and guest .* HOST=0\.0\.0\.0 .*ALLOW_DEMO_USERS=true/;
    await assert.rejects(requireConfiguration(shippedDirectory, open), message);
    const { configuration } = await requireConfiguration(shippedDirectory, { ...open, allowDemoUsers: true });
    assert.equal(configuration.users.length, 2);
  });
});
