/** Tests which changes of a configuration directory are reported. */
import assert from 'node:assert/strict';
import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { type ConfigurationWatch, type LoadedConfiguration, loadConfiguration, watchConfiguration } from '#config';
import { temporaryFiles } from '../support/temporary-files.ts';

const limits = (requests: number | string) =>
  `domain: d\ndescriptors:\n  - key: k\n    rate_limit: { unit: minute, requests_per_unit: ${requests} }\n`;

describe('watchConfiguration', () => {
  const writeFiles = temporaryFiles();
  let watch: ConfigurationWatch | undefined;
  let reports: LoadedConfiguration[];
  let onReport: () => void;
  let onError: (error: unknown) => void;

  beforeEach(() => {
    reports = [];
    onReport = () => {};
    onError = (error) => assert.fail(String(error));
  });

  afterEach(() => watch?.close());

  const [a, b] = ['ratelimit/a.yaml', 'ratelimit/b.yaml'];
  const other = limits(2).replace('domain: d', 'domain: e');
  const two = ({ configuration }: LoadedConfiguration) => configuration.limits.length === 2;

  /** Creates a directory with a single file, `a`, that allows one request. */
  const oneFile = () => writeFiles({ [a]: limits(1) });

  async function start(directory: string, initial?: LoadedConfiguration, threadFromBytes = 1e9): Promise<void> {
    watch = await watchConfiguration({
      directory,
      initial: initial ?? (await loadConfiguration(directory)),
      quietMs: 10,
      threadFromBytes,
      onError: (error) => onError(error),
      onChange(loaded) {
        reports.push(loaded);
        onReport();
      },
    });
  }

  async function startWithOneFile(): Promise<string> {
    const directory = await oneFile();
    await start(directory);
    return directory;
  }

  /** Waits until the last report meets the condition. Files that are written in parts may be reported in parts. */
  async function reported(wanted: (loaded: LoadedConfiguration) => boolean): Promise<LoadedConfiguration> {
    for (;;) {
      const last = reports.at(-1);
      if (last !== undefined && wanted(last)) return last;
      await new Promise<void>((resolve) => {
        onReport = resolve;
      });
    }
  }

  const says = (requests: number) => (loaded: LoadedConfiguration) =>
    loaded.errors.length === 0 && JSON.stringify(loaded).includes(`"requestsPerUnit":${requests},`);

  /** Writes other limits, and waits until they are reported. */
  async function change(directory: string, requests: number): Promise<void> {
    await writeFile(join(directory, a), limits(requests));
    await reported(says(requests));
  }

  it('reports a swap of a link in the path of the directory, and later changes', async () => {
    const releases = await writeFiles({ [`1/config/${a}`]: limits(1), [`2/config/${a}`]: limits(2) });
    const directory = join(releases, 'current/config');
    await symlink('1', join(releases, 'current'));
    await start(directory);
    await symlink('2', join(releases, 'next'));
    await rename(join(releases, 'next'), join(releases, 'current'));
    await reported(says(2));
    await change(directory, 3);
  });

  for (const [part, target] of [
    ['ratelimit', '../current'],
    [a, '../../current/a.yaml'],
  ] as const)
    it(`reports a swap of a link that ${part} leads through`, async () => {
      const releases = await writeFiles({ '1/a.yaml': limits(1), '2/a.yaml': limits(2), 'config/users.yaml': '' });
      const directory = join(releases, 'config');
      await symlink('1', join(releases, 'current'));
      await mkdir(dirname(join(directory, part)), { recursive: true });
      await symlink(target, join(directory, part));
      await start(directory);
      await symlink('2', join(releases, 'next'));
      await rename(join(releases, 'next'), join(releases, 'current'));
      await reported(says(2));
    });

  it('reports a file that is created, renamed over another, or deleted', async () => {
    const directory = await writeFiles({ 'ratelimit/a.yaml': limits(1), 'new.txt': limits(3) });
    await start(directory);
    await writeFile(join(directory, b), other);
    await reported(two);
    await rename(join(directory, 'new.txt'), join(directory, a));
    await reported(says(3));
    await rm(join(directory, b));
    await reported(({ configuration }) => configuration.limits.length === 1);
  });

  for (const file of ['services/a.yaml', 'services/new.yaml'])
    it(`reports an error while ${file} is empty, because a program may be about to write it`, async () => {
      const directory = await writeFiles({ 'services/a.yaml': '# none\n', 'services/empty.yaml': '' });
      await start(directory);
      for (const text of ['', '# written\n', '']) {
        await writeFile(join(directory, file), text);
        const { errors } = await reported((loaded) => (loaded.errors.length === 1) === (text === ''));
        const found = errors.map(({ source, message }) => `${relative(directory, source.file)}: ${message}`);
        assert.deepEqual(found, text === '' ? [`${file}: the file is empty`] : []);
      }
      await rm(join(directory, file));
      await reported(({ errors }) => errors.length === 0);
    });

  it('reports further changes although a file is a link to itself', async () => {
    const directory = await startWithOneFile();
    onError = (error) => assert.match(String(error), /ELOOP/);
    await mkdir(join(directory, 'services'));
    await symlink('loop.yaml', join(directory, 'services/loop.yaml'));
    const { errors } = await reported((loaded) => loaded.errors.length > 0);
    assert.deepEqual(
      errors.map(({ message }) => message),
      ['the file cannot be read: it is a link to itself'],
    );
    await writeFile(join(directory, a), limits(2));
    await reported((loaded) => JSON.stringify(loaded).includes('"requestsPerUnit":2,'));
  });

  it('reports a new folder', async () => {
    const directory = await writeFiles({ 'services/none.yaml': '' });
    await start(directory);
    await mkdir(join(directory, 'ratelimit'));
    await change(directory, 2);
  });

  it('reports changes in a folder that was deleted and created again', async () => {
    const directory = await startWithOneFile();
    await rm(join(directory, 'ratelimit'), { recursive: true });
    await reported(({ errors }) => errors.length > 0);
    await mkdir(join(directory, 'ratelimit'));
    // The first change may be found by the reading that the new folder triggers.
    for (const requests of [2, 3, 4, 5, 6, 7, 8, 9]) await change(directory, requests);
  });

  it('reports changes in a directory that was deleted and created again, and in one that took its place', async () => {
    const directory = await startWithOneFile();
    await rm(directory, { recursive: true });
    await reported(({ errors }) => errors.length > 0);
    await mkdir(join(directory, 'ratelimit'), { recursive: true });
    for (const requests of [2, 3, 4]) await change(directory, requests);
    const next = await writeFiles({ [a]: limits(5) });
    await rename(directory, `${directory}-old`);
    await rename(next, directory);
    await reported(says(5));
    for (const requests of [6, 7, 8]) await change(directory, requests);
    await rm(`${directory}-old`, { recursive: true });
  });

  it('reports every update of a ConfigMap, which only replaces a link', async () => {
    const directory = await writeFiles({
      'ratelimit/..1/a.yaml': limits(1),
      'ratelimit/..2/a.yaml': limits(2),
      'ratelimit/..3/a.yaml': limits(3),
    });
    const folder = join(directory, 'ratelimit');
    await symlink('..1', join(folder, '..data'));
    await symlink('..data/a.yaml', join(folder, 'a.yaml'));
    await start(directory);
    for (const next of [2, 3]) {
      await symlink(`..${next}`, join(folder, '..data_tmp'));
      await rename(join(folder, '..data_tmp'), join(folder, '..data'));
      await rm(join(folder, `..${next - 1}`), { recursive: true });
      await reported(says(next));
    }
  });

  it('reports changes from before it started to watch', async () => {
    const directory = await oneFile();
    const initial = await loadConfiguration(directory);
    await writeFile(join(directory, a), limits(2));
    await start(directory, initial);
    assert.equal(reports.length, 1);
  });

  it('does not report a file that is written again without changes', async () => {
    const directory = await startWithOneFile();
    await writeFile(join(directory, a), limits(1));
    await writeFile(join(directory, b), other);
    await reported(two);
    assert.equal(reports.length, 1);
  });

  for (const [where, threadFromBytes] of [
    ['on the event loop', 1e9],
    ['in a thread', 0],
  ] as const)
    it(`reads only changed files, and keeps the objects of the others, ${where}`, async () => {
      const directory = await oneFile();
      const initial = await loadConfiguration(directory);
      await start(directory, initial, threadFromBytes);
      await writeFile(join(directory, b), other);
      const { configuration } = await reported(two);
      assert.equal(configuration.limits[0], initial.configuration.limits[0]);
      assert.ok(Object.isFrozen(configuration.limits[1]?.descriptors[0]));
    });

  it('receives a large file and many small ones from a thread completely and in order', async () => {
    const directory = await writeFiles({});
    await start(directory, undefined, 0);
    const record = (name: string) =>
      `{ apiVersion: gateway/v1, kind: Mapping, name: ${name}, prefix: /${name}, service: a:1 }\n`;
    const names = (first: string) => Array.from({ length: 400 }, (_, index) => `${first}${1000 + index}`);
    await mkdir(join(directory, 'services'));
    const large = [...names('a'), ...names('b')];
    await writeFile(join(directory, 'services/a.yaml'), large.map(record).join('---\n'));
    const small = names('c');
    await Promise.all(small.map((name) => writeFile(join(directory, `services/${name}.yaml`), record(name))));
    await watch?.reload();
    const { configuration, files } = await reported((loaded) => loaded.configuration.mappings.length === 1200);
    const read = configuration.mappings.map(({ name }) => name);
    assert.deepEqual(read, [...large, ...small]);
    assert.equal(files?.length, 401);
    assert.ok(configuration.mappings.every((mapping) => Object.isFrozen(mapping.headers)));
  });

  it('reads immediately on reload(), without an event', async () => {
    const directory = await startWithOneFile();
    await writeFile(join(directory, a), limits(2));
    await watch?.reload();
    assert.ok(reports.some(says(2)));
  });

  it('stops a reading in a thread when it is closed', async () => {
    const directory = await oneFile();
    await start(directory, undefined, 0);
    await writeFile(join(directory, a), limits(2));
    const reading = watch?.reload();
    await watch?.close();
    await reading;
    assert.deepEqual(reports, []);
  });

  it('reports nothing after it is closed, and can be closed again', async () => {
    const directory = await startWithOneFile();
    await watch?.close();
    await writeFile(join(directory, a), limits(2));
    await watch?.close();
    assert.deepEqual(reports, []);
  });
});
