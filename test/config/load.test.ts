/** Tests the loading of directories and of records from a program, including missing and invalid files. */
import assert from 'node:assert/strict';
import { renameSync } from 'node:fs';
import { chmod, chown, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import * as fc from 'fast-check';
import { type ConfigurationRecords, configurationFrom, formatErrors, loadConfiguration, loadDirectory } from '#config';
import { temporaryFiles } from '../support/temporary-files.ts';
import { untyped } from '../support/untyped.ts';

const head = { apiVersion: 'gateway/v1' };
const mapping = (name: string) => ({ ...head, kind: 'Mapping', name, prefix: `/${name}`, service: name });
const mappingYaml = (name: string) => JSON.stringify(mapping(name));

const nothing = {
  mappings: [],
  authServices: [],
  jwtProviders: [],
  rateLimitServices: [],
  versions: [],
};
const empty = { ...nothing, addresses: [], limits: [], users: [], demo: {}, upstreamFiles: [] };

describe('loadConfiguration', () => {
  const writeFiles = temporaryFiles();

  async function load(files: Readonly<Record<string, string>>, gatewayDomain?: string) {
    const directory = await writeFiles(files);
    const { configuration, errors } = await loadConfiguration(directory, { gatewayDomain });
    const places = configuration.mappings.map(({ name, source: { file, line } }) => {
      return `${name} ${file.slice(directory.length + 1)}:${line}`;
    });
    const report = formatErrors(errors, directory);
    return { configuration, places, report: report === '' ? [] : report.split('\n') };
  }

  it('loads the configuration that ships with frontdesk', async () => {
    const { configuration, errors } = await loadConfiguration(fileURLToPath(new URL('../../config', import.meta.url)));
    assert.deepEqual(errors, []);
    assert.deepEqual(
      configuration.mappings.map(({ name, prefix, service, labels }) => [name, prefix, service, Object.keys(labels)]),
      [
        ['car', '/v1/cars', 'car', []],
        ['hotel', '/v1/hotels', 'hotel', ['gateway']],
      ],
    );
    assert.deepEqual(configuration.authServices[0]?.allowedAuthorizationHeaders, ['x-travel-user']);
    assert.equal(configuration.rateLimitServices[0]?.service, 'ratelimit');
    const descriptors = configuration.limits[0]?.descriptors ?? [];
    assert.deepEqual(
      descriptors.map(({ key, limits: [limit] }) => `${key}: ${limit?.requestsPerUnit} a ${limit?.unit}`),
      ['x-gateway-test-allow: 10 a minute', 'x-travel-user: 6000 a minute'],
    );
    const tables = 'hotels room_types cars hotel_bookings car_bookings accounts messages';
    assert.deepEqual(Object.keys(configuration.demo).join(' '), tables);
  });

  it('reads .yaml and .yml files in the order of their names, and ignores other files', async () => {
    const broken = 'broken: [';
    const others = { 'services/.hidden.yaml': broken, 'services/notes.txt': broken, 'services/a.yaml~': broken };
    const both = `${mappingYaml('a')}\n---\n${mappingYaml('z')}`;
    const { places, report } = await load({ 'services/b.yml': mappingYaml('b'), 'services/a.yaml': both, ...others });
    assert.deepEqual(places, ['a services/a.yaml:1', 'z services/a.yaml:3', 'b services/b.yml:1']);
    assert.deepEqual(report, []);
  });

  it('reports the errors of all files, and returns no record if one of them is wrong', async () => {
    const { configuration, report } = await load({
      'services/a.yaml': `${mappingYaml('a')}\n---\nkind: Mapping\n---\n${mappingYaml('b')}`,
      'services/c.yaml': 'broken: [',
      'services/d.yaml': mappingYaml('d'),
      'ratelimit/a.yaml': 'domain: a',
      'demo.yaml': 'hotels: []',
    });
    assert.deepEqual(configuration, empty);
    const files = report.flatMap((line) => /^services\/..yaml/.exec(line) ?? []);
    assert.deepEqual([...new Set(files)], ['services/a.yaml', 'services/c.yaml']);
  });

  it('returns the records and limits, and the other users, if only a user is wrong', async () => {
    const hash = `$scrypt$ln=14,r=8,p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`;
    const users = [{ name: 'ann' }, { name: 'bob', password_hash: hash }];
    const { configuration, places, report } = await load({
      'services/a.yaml': mappingYaml('a'),
      'ratelimit/a.yaml': 'domain: a',
      'users.yaml': JSON.stringify({ users }),
    });
    assert.match(report[0] ?? '', /^users\.yaml:1 {2}User ann: /);
    assert.deepEqual([places, configuration.limits.length], [['a services/a.yaml:1'], 1]);
    assert.deepEqual(
      configuration.users.map(({ name }) => name),
      ['bob'],
    );
  });

  it('reports conflicts between files', async () => {
    const { report } = await load({ 'services/a.yaml': mappingYaml('a'), 'services/b.yaml': mappingYaml('a') });
    assert.deepEqual(report, [
      'services/b.yaml:1  Mapping a: another Mapping already has this name (services/a.yaml:1)',
      '    Rename one of the two, or remove it.',
    ]);
  });

  it('returns frozen data', async () => {
    const { configuration } = await load({ 'services/a.yaml': mappingYaml('a') });
    const [first] = configuration.mappings;
    assert.ok([configuration, configuration.mappings, first, first?.labels].every(Object.isFrozen));
  });

  it('reads only the annotations of the given gateway domain', async () => {
    const annotation = `  annotations:\n    edge.example/config: '${mappingYaml('a')}'\n`;
    const files = { 'services/a.yaml': `apiVersion: v1\nkind: Service\nmetadata:\n  name: a\n${annotation}` };
    assert.deepEqual((await load(files, 'edge.example')).places, ['a services/a.yaml:6']);
    assert.deepEqual((await load(files)).places, []);
  });

  for (const [title, files, ...expected] of [
    ['accepts a directory with services only', { 'services/a.yaml': mappingYaml('a') }],
    ['accepts a directory with limits only', { 'ratelimit/a.yaml': 'domain: a' }],
    ['accepts empty files', { 'services/a.yaml': '', 'users.yaml': '# none', 'demo.yaml': '' }],
    [
      'reports a limits file without a domain',
      { 'ratelimit/a.yaml': '# none\n---\n' },
      'ratelimit/a.yaml:1  there is no domain in this file',
    ],
    ['reports a directory without configuration', { 'readme.txt': '' }, '.  there is no configuration here'],
    [
      'reports folders and files with mistyped names',
      { 'service/a.yaml': '', 'user.yaml': '', 'services/a.yaml': '' },
      'service  "service" is not read, did you mean "services"?',
      'user.yaml  "user.yaml" is not read, did you mean "users.yaml"?',
    ],
    [
      'ignores hidden files and backups',
      {
        'users.yaml': '',
        'users.yaml~': '',
        '#users.yaml#': '',
        '.#users.yaml': '',
        '.users.yaml': '',
        'users.yaml.1': '',
        'services~/a.yaml': '',
      },
    ],
    [
      'reports a folder that should be a file, and a file that should be a folder',
      { 'users.yaml/a': '', services: '' },
      'services  the directory cannot be read: it is not a directory',
      'users.yaml  the file cannot be read: it is a directory',
    ],
  ] as const)
    it(title, async () => {
      const { report } = await load(files);
      assert.deepEqual(
        report.filter((line) => !line.startsWith('    ')),
        expected,
      );
    });

  it('returns a notice about an empty file of records or users, and none about one with a comment', async () => {
    const directory = await writeFiles({ 'services/a.yaml': '', 'services/b.yaml': '# none\n', 'users.yaml': ' \n' });
    const { errors, notices } = await loadConfiguration(directory);
    assert.deepEqual(errors, []);
    assert.equal(
      formatErrors(notices, directory),
      ['services/a.yaml', 'users.yaml']
        .map(
          (file) =>
            `${file}  the file is empty\n    Write it, or remove it. A file without records may contain a comment.`,
        )
        .join('\n'),
    );
  });

  for (const [mode, who] of [
    [0o666, 'every user of this machine'],
    [0o620, 'its group'],
  ] as const)
    it(`returns a notice about users.yaml with the mode ${mode.toString(8)}, which ${who} can write`, async function () {
      const directory = await writeFiles({ 'users.yaml': 'users: []' });
      const file = join(directory, 'users.yaml');
      await chmod(file, mode);
      // Only root can give the file to a group that is not the owner's own.
      if (mode === 0o620) await chown(file, 0, 12_345).catch(() => this.skip());
      const { notices } = await loadConfiguration(directory);
      assert.equal(
        formatErrors(notices, directory),
        `users.yaml  ${who} can write this file, and so add users\n    Run: chmod go-w ${file}`,
      );
    });

  it('returns no notice about users.yaml that others can read, or that the group of its owner alone can write', async () => {
    const directory = await writeFiles({ 'users.yaml': 'users: []' });
    const file = join(directory, 'users.yaml');
    for (const mode of [0o600, 0o644, 0o444, 0o664]) {
      await chmod(file, mode);
      const { uid, gid } = await stat(file);
      const { notices } = await loadConfiguration(directory);
      if (mode !== 0o664 || uid === gid) assert.deepEqual(notices, [], mode.toString(8));
    }
  });

  it('returns notices about folders and about other YAML and JSON files, which are not read', async () => {
    const parts = {
      'demo.yaml': '# none',
      'services/a.json': '{}',
      'services/notes.txt': '',
      'services/.hidden/a.yaml': '',
      'services/B.YML': '',
      'services/team/a.yaml': '',
    };
    const directory = await writeFiles({ 'extra.yaml': '', 'README.md': '', 'recipes/a.yaml': '', ...parts });
    await symlink('loop', join(directory, 'services/loop'));
    const { errors, notices } = await loadConfiguration(directory);
    assert.deepEqual(errors, []);
    assert.equal(
      formatErrors(notices, directory),
      'extra.yaml  "extra.yaml" is not read\n    Move it to services/ if it contains records, to ratelimit/ if it contains limits, or out of the directory.\n' +
        'services/B.YML  "B.YML" is not read\n    Rename it to B.yaml.\n' +
        'services/a.json  "a.json" is not read\n    Rename it to a.yaml: JSON is valid YAML.\n' +
        'services/team  "team" is not read\n    Move its files to services/: subfolders are not read.',
    );
  });

  it('reports a file that is too large without reading it', async () => {
    const directory = await writeFiles({ 'services/large.yaml': '', 'services/a.yaml': mappingYaml('a') });
    await truncate(join(directory, 'services/large.yaml'), 2 ** 40);
    const { errors } = await loadConfiguration(directory);
    const expected = 'services/large.yaml  the file has 1099511627776 bytes, and at most 33554432 are read';
    assert.equal(formatErrors(errors, directory).split('\n')[0], expected);
  });

  it('reports a broken link, a link to itself, a folder and a device, each with a remedy', async () => {
    const directory = await writeFiles({ 'services/folder.yaml/a': '' });
    await symlink('nothing', join(directory, 'services/gone.yaml'));
    await symlink('loop.yaml', join(directory, 'services/loop.yaml'));
    await symlink('/dev/zero', join(directory, 'services/zero.yaml'));
    const { errors } = await loadConfiguration(directory);
    const link = 'Correct the link, or remove it.';
    const file = 'Replace it with a file, or move it out of the directory.';
    assert.deepEqual(
      errors.map(({ source, message, remedy }) => [basename(source.file), message.replace(/.*: /, ''), remedy]),
      [
        ['folder.yaml', 'it is a directory', file],
        ['gone.yaml', 'it does not exist', link],
        ['loop.yaml', 'it is a link to itself', link],
        ['zero.yaml', 'it is not a regular file', file],
      ],
    );
  });

  for (const [encoding, bytes, line] of [
    ['Latin-1', Buffer.from(`# first\n${mappingYaml('a')} # caf\xe9`, 'latin1'), 2],
    ['UTF-16', Buffer.from(`\uFEFF${mappingYaml('a')}`, 'utf16le'), 1],
  ] as const)
    it(`rejects a file in ${encoding}`, async () => {
      const directory = await writeFiles({ 'services/b.yaml': mappingYaml('b') });
      await writeFile(join(directory, 'services/a.yaml'), bytes);
      const { errors } = await loadConfiguration(directory);
      const expected = `services/a.yaml:${line}  this is not valid UTF-8\n    Save the file as UTF-8.`;
      assert.equal(formatErrors(errors, directory), expected);
    });

  it('never mixes the files before and after the swap of a link to the directory', async () => {
    const auth = JSON.stringify({ ...head, kind: 'AuthService', name: 'auth', auth_service: 'auth', proto: 'http' });
    const before = await writeFiles({ 'services/a.yaml': `${mappingYaml('a')}\n---\n${auth}` });
    const after = await writeFiles({ 'services/a.yaml': mappingYaml('a'), 'services/b.yaml': auth });
    const link = join(await writeFiles(), 'current');
    for (const turns of Array(10).keys()) {
      await rm(link, { force: true });
      await symlink(before, link);
      await symlink(after, `${link}.new`);
      const loading = loadConfiguration(link);
      for (let turn = 0; turn < turns; turn += 1) await setImmediate();
      // Blocks the thread, so that a listing that has begun ends before the swap, and is used after it.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
      renameSync(`${link}.new`, link);
      const { configuration, errors } = await loading;
      assert.deepEqual([configuration.authServices.length, errors], [1, []], `after ${turns} turns`);
    }
  });

  it('reports a directory that does not exist, with a remedy', async () => {
    for (const [load, remedy] of [
      [loadConfiguration, 'pass another directory.'],
      [loadDirectory, 'set CONFIG_DIR to its location.'],
    ] as const) {
      const { configuration, errors } = await load('/nowhere/at/all', {});
      assert.deepEqual(configuration, empty);
      assert.equal(
        formatErrors(errors, '/nowhere'),
        `at/all  the directory cannot be read: it does not exist\n    Create one with frontdesk init, or ${remedy}`,
      );
    }
  });
});

describe('configurationFrom', () => {
  const none = { records: [], limits: undefined, users: undefined, demo: undefined };
  for (const given of [{ records: [] }, none])
    it(`accepts lists that are empty or missing: ${Object.keys(given)}`, () => {
      assert.deepEqual(configurationFrom(given), { configuration: empty, errors: [], notices: [], upstreamFiles: [] });
    });

  it('returns demo data unchanged, and rejects all of it if a cell is not a scalar', () => {
    const demo = { hotels: [{ id: 'a', stars: 4, open: true, note: null }], cars: [] };
    assert.deepEqual(configurationFrom({ records: [], demo }).configuration.demo, demo);
    const { configuration, errors } = configurationFrom(
      untyped({ records: [], demo: { ...demo, cars: [{ id: {} }] } }),
    );
    assert.deepEqual(configuration.demo, {});
    assert.equal(errors[0]?.message, 'cars[0].id must be a string, a number, true, false or null');
  });

  /** Checks a configuration of the wrong shape, which a program without types may pass. */
  const rejects = (title: string, given: unknown, message: string, remedy: RegExp) =>
    it(`rejects ${title}`, () => {
      const { configuration, errors } = configurationFrom(given as ConfigurationRecords);
      assert.deepEqual(
        errors.map((error) => [error.source, error.record, error.message]),
        [[{ file: '<options>', line: 1 }, undefined, message]],
      );
      assert.match(errors[0]?.remedy ?? '', remedy);
      assert.deepEqual(configuration, empty);
    });

  const example = /^For example: \{ records: \[/;
  rejects('null', null, 'the configuration must be a map, not nothing', example);
  rejects('a bare list', [], 'the configuration must be a map, not a list', example);
  rejects('a map without records', {}, 'records is missing', /^For example: records: \[/);
  rejects('a mistyped key', { record: [] }, 'unknown key "record", did you mean "records"?', /^Write "records"/);
  rejects('an unknown key', { records: [], route: [] }, 'unknown key "route"', /keys are records, limits, users, demo/);
  rejects(
    'records that are not a list',
    { records: {} },
    'records must be a list, not a map',
    /^For example: records: \[/,
  );
  rejects('limits that are not a list', { records: [], limits: {} }, 'limits must be a list, not a map', /limits: \[/);
  rejects('users that are not a list', { records: [], users: {} }, 'users must be a list, not a map', /users: \[/);

  it('numbers the records from 1 in messages', () => {
    const { errors } = configurationFrom(untyped({ records: [mapping('a'), { ...mapping('b'), prefix: 'b' }] }));
    assert.equal(
      formatErrors(errors, '/'),
      '<options>:2  Mapping b: prefix "b" does not start with "/"\n    Write it as "/b".',
    );
  });

  it('does not change or freeze its input', () => {
    const record = { ...mapping('a'), labels: { gateway: [{ user: [{ 'x-user': { header: 'X-User' } }] }] } };
    const before = structuredClone(record);
    configurationFrom(untyped({ records: [record], demo: { hotels: [{ id: 1 }] } }));
    assert.deepEqual(record, before);
    assert.ok(!Object.isFrozen(record.labels.gateway));
  });

  it('returns all mappings if they differ in prefix and name, and otherwise none and an error for each repetition', () => {
    const name = fc.constantFrom('a', 'b', 'c', 'd');
    const record = fc.record({ name, path: name }).map(({ name, path }) => ({ ...mapping(name), prefix: `/${path}` }));
    void fc.assert(
      fc.property(fc.array(record), (records) => {
        const { configuration, errors } = configurationFrom(untyped({ records }));
        const wrong = errors.map(({ source }) => source.line);
        const right = records.filter((_, index) => !wrong.includes(index + 1));
        assert.equal(new Set(right.map(({ prefix }) => prefix)).size, right.length);
        assert.equal(new Set(right.map((one) => one.name)).size, right.length);
        assert.equal(right.length + errors.length, records.length);
        assert.equal(configuration.mappings.length, errors.length === 0 ? records.length : 0);
      }),
    );
  });

  it('never throws', () => {
    void fc.assert(
      fc.property(fc.array(fc.anything()), fc.anything(), fc.array(fc.anything()), (records, demo, limits) => {
        configurationFrom(untyped({ records, demo, limits, users: limits }));
      }),
    );
  });
});
