/** A configuration directory from the disk: what is read, what may be missing, what is said of the rest. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as fc from 'fast-check';
import { configurationFrom, formatErrors, loadConfiguration } from '#config';

/** Runs with a directory of these files and removes it afterwards; a name that ends with a slash is a folder. */
async function withDirectory(files: Readonly<Record<string, string>>, run: (directory: string) => Promise<void>) {
  const directory = mkdtempSync(join(tmpdir(), 'frontdesk-'));
  try {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(join(directory, name.endsWith('/') ? name : dirname(name)), { recursive: true });
      if (!name.endsWith('/')) writeFileSync(join(directory, name), text);
    }
    await run(directory);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

const mapping = (name: string) => ({
  apiVersion: 'gateway/v1',
  kind: 'Mapping',
  name,
  prefix: `/${name}`,
  service: name,
});
const mappingYaml = (name: string) => JSON.stringify(mapping(name));
const empty = {
  mappings: [],
  authServices: [],
  rateLimitServices: [],
  versions: [],
  limits: [],
  users: [],
  blocked: [],
  demo: {},
};

function check(title: string, files: Readonly<Record<string, string>>, expected: readonly string[]): void {
  it(title, () =>
    withDirectory(files, async (directory) => {
      const { errors } = await loadConfiguration(directory);
      const lines = formatErrors(errors, directory).split('\n');
      assert.deepEqual(errors.length === 0 ? [] : lines.filter((line) => !line.startsWith(' ')), expected);
    }),
  );
}

describe('loadConfiguration', () => {
  it('reads the configuration that comes with frontdesk', async () => {
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
    assert.deepEqual(
      configuration.limits[0]?.descriptors.map(({ key, limits: [limit] }) => [
        key,
        limit?.requestsPerUnit,
        limit?.unit,
      ]),
      [
        ['x-gateway-test-allow', 10, 'minute'],
        ['x-travel-user', 6000, 'minute'],
      ],
    );
    assert.deepEqual(Object.keys(configuration.demo), [
      'hotels',
      'room_types',
      'cars',
      'hotel_bookings',
      'car_bookings',
      'accounts',
      'messages',
    ]);
  });

  it('reads files in the order of their names, yaml and yml, and nothing else', () =>
    withDirectory(
      {
        'services/b.yml': mappingYaml('b'),
        'services/a.yaml': `${mappingYaml('a')}\n---\n${mappingYaml('z')}`,
        'services/.hidden.yaml': 'broken: [',
        'services/notes.txt': 'broken: [',
        'services/a.yaml~': 'broken: [',
      },
      async (directory) => {
        const { configuration, errors } = await loadConfiguration(directory);
        assert.deepEqual(errors, []);
        assert.deepEqual(
          configuration.mappings.map(({ name, source }) => [name, source.file, source.line]),
          [
            ['a', join(directory, 'services/a.yaml'), 1],
            ['z', join(directory, 'services/a.yaml'), 3],
            ['b', join(directory, 'services/b.yml'), 1],
          ],
        );
      },
    ));

  it('keeps every good record beside a bad one, and every good file beside one that does not parse', () =>
    withDirectory(
      {
        'services/a.yaml': `${mappingYaml('a')}\n---\nkind: Mapping\n---\n${mappingYaml('b')}`,
        'services/c.yaml': 'broken: [',
        'services/d.yaml': mappingYaml('d'),
      },
      async (directory) => {
        const { configuration, errors } = await loadConfiguration(directory);
        assert.deepEqual(
          configuration.mappings.map(({ name }) => name),
          ['a', 'b', 'd'],
        );
        assert.deepEqual([...new Set(errors.map(({ source }) => source.file.slice(-6)))], ['a.yaml', 'c.yaml']);
      },
    ));

  it('finds clashes between files, and keeps the first', () =>
    withDirectory({ 'services/a.yaml': mappingYaml('a'), 'services/b.yaml': mappingYaml('a') }, async (directory) => {
      const { configuration, errors } = await loadConfiguration(directory);
      assert.equal(configuration.mappings[0]?.source.file, join(directory, 'services/a.yaml'));
      assert.equal(
        formatErrors(errors, directory),
        'services/b.yaml:1  Mapping a: there is already a Mapping of this name (services/a.yaml:1)\n    Rename one of the two, or remove it.',
      );
    }));

  it('gives frozen data', () =>
    withDirectory({ 'services/a.yaml': mappingYaml('a') }, async (directory) => {
      const { configuration } = await loadConfiguration(directory);
      for (const value of [
        configuration,
        configuration.mappings,
        configuration.mappings[0],
        configuration.mappings[0]?.labels,
      ]) {
        assert.ok(Object.isFrozen(value));
      }
    }));

  it('uses the gateway domain that it is given', () =>
    withDirectory(
      {
        'services/a.yaml': `apiVersion: v1\nkind: Service\nmetadata:\n  name: a\n  annotations:\n    edge.example/config: '${mappingYaml('a')}'\n`,
      },
      async (directory) => {
        const names = async (gatewayDomain?: string) =>
          (await loadConfiguration(directory, { gatewayDomain })).configuration.mappings.map(({ name }) => name);
        assert.deepEqual([await names('edge.example'), await names()], [['a'], []]);
      },
    ));

  check('does with services alone', { 'services/a.yaml': mappingYaml('a') }, []);
  check('does with limits alone', { 'ratelimit/a.yaml': 'domain: a' }, []);
  check('does with empty files', { 'services/a.yaml': '', 'users.yaml': '# none', 'demo.yaml': '' }, []);
  check(
    'says when a directory has no configuration',
    { 'readme.txt': '' },
    ['.:1  there is no configuration here'].map((line) => line.slice(1)),
  );
  check('says when a folder has nearly the right name', { 'service/a.yaml': '', 'users.yaml': '' }, [
    'service:1  "service" is not read, did you mean "services"?',
  ]);
  check('says when a file has nearly the right name', { 'services/': '', 'user.yaml': '' }, [
    'user.yaml:1  "user.yaml" is not read, did you mean "users.yaml"?',
  ]);
  check('says when a file is a folder', { 'users.yaml/': '' }, [
    'users.yaml:1  the file cannot be read: it is a directory',
  ]);
  check('says when a folder is a file', { services: '' }, [
    'services:1  the directory cannot be read: it is not a directory',
  ]);

  it('says when the directory does not exist, and what to do', async () => {
    const { configuration, errors } = await loadConfiguration('/nowhere/at/all');
    assert.deepEqual(configuration, empty);
    assert.equal(
      formatErrors(errors, '/nowhere'),
      'at/all:1  the directory cannot be read: it does not exist\n    Create it, or set CONFIG_DIR to where the configuration is.',
    );
  });
});

describe('configurationFrom', () => {
  it('gives the empty configuration for no records', () => {
    assert.deepEqual(configurationFrom({ records: [] }), { configuration: empty, errors: [], notices: [] });
  });

  it('counts the records from 1 in messages', () => {
    const { errors } = configurationFrom({ records: [mapping('a'), { ...mapping('b'), prefix: 'b' }] });
    assert.equal(
      formatErrors(errors, '/'),
      '<options>:2  Mapping b: prefix "b" does not start with "/"\n    Write it as "/b".',
    );
  });

  it('leaves what it was given as it was', () => {
    const record = { ...mapping('a'), labels: { gateway: [{ user: [{ 'x-user': { header: 'X-User' } }] }] } };
    const before = structuredClone(record);
    configurationFrom({ records: [record], demo: { hotels: [{ id: 1 }] } });
    assert.deepEqual(record, before);
    assert.ok(!Object.isFrozen(record.labels.gateway));
  });

  it('keeps one Mapping for each prefix and name, whatever comes', () => {
    const name = fc.constantFrom('a', 'b', 'c', 'd');
    const record = fc.record({ name, path: name }).map(({ name, path }) => ({ ...mapping(name), prefix: `/${path}` }));
    void fc.assert(
      fc.property(fc.array(record), (records) => {
        const { configuration, errors } = configurationFrom({ records });
        const { mappings } = configuration;
        assert.equal(new Set(mappings.map(({ prefix }) => prefix)).size, mappings.length);
        assert.equal(new Set(mappings.map((one) => one.name)).size, mappings.length);
        assert.equal(mappings.length + errors.length, records.length);
      }),
    );
  });

  it('never throws, whatever a record is', () => {
    void fc.assert(
      fc.property(fc.array(fc.anything()), fc.anything(), fc.array(fc.anything()), (records, demo, limits) => {
        configurationFrom({ records, demo, limits, users: limits });
      }),
    );
  });
});
