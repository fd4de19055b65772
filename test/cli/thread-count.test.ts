/** How many threads serve requests on which system. */
import assert from 'node:assert/strict';
import { parseSettings } from '#config';
import { type ModuleName, settingTable } from '#server/product';
import { chooseThreads, countThreads, type System } from '../../src/cli/threads.ts';

const mebibyte = 1024 * 1024;
const large: System = { platform: 'linux', cores: 8, memory: 64 * 1024 * mebibyte };

describe('countThreads', () => {
  interface Case {
    readonly threads?: number;
    readonly demo?: boolean;
    readonly modules?: readonly ModuleName[];
    readonly databaseUrl?: string;
    readonly system?: Partial<System>;
  }

  function check(one: Case, expected: number, warning?: RegExp): void {
    const { threads, demo = false, modules = ['gateway'], databaseUrl = 'sqlite:./x.db', system = {} } = one;
    const warnings: string[] = [];
    const logger = { info() {}, error() {}, warn: (_fields: object, message = '') => void warnings.push(message) };
    const settings = parseSettings(settingTable, { DATABASE_URL: databaseUrl });
    const setup = { settings, logger, has: (name: ModuleName) => modules.includes(name) };
    assert.equal(countThreads({ threads, demo, setup, system: { ...large, ...system } }), expected);
    assert.equal(warnings.length, warning === undefined ? 0 : 1, warnings.join());
    if (warning !== undefined) assert.match(warnings[0] ?? '', warning);
  }

  it('is one for each core by default, and one for a demo', () => {
    check({}, 8);
    check({ system: { cores: 1 } }, 1);
    check({ demo: true }, 1);
  });

  it('is bounded by the memory limit by default: 128 MiB for the process and for each thread', () => {
    check({ system: { memory: 512 * mebibyte } }, 3);
    check({ system: { memory: 256 * mebibyte } }, 1);
    check({ system: { memory: 64 * mebibyte } }, 1);
  });

  it('is the setting, on any number of cores and in a demo', () => {
    check({ threads: 1 }, 1);
    check({ threads: 16, system: { memory: 256 * mebibyte } }, 16);
    check({ threads: 4, demo: true }, 4);
  });

  it('is one on a system that does not share ports, and says so if the setting is more', () => {
    for (const platform of ['darwin', 'win32']) {
      check({ system: { platform } }, 1);
      check({ threads: 1, system: { platform } }, 1);
      check({ threads: 2, system: { platform } }, 1, new RegExp(`${platform} does not distribute`));
    }
  });

  it('has a reason', () => {
    const settings = parseSettings(settingTable, {});
    const reasonOf = (system: Partial<System>, threads?: number, demo = false) =>
      chooseThreads({ threads, demo, settings, has: () => false, system: { ...large, ...system } }).reason;
    assert.equal(reasonOf({}), 'one for each core');
    assert.equal(reasonOf({ memory: 512 * mebibyte }), 'no more fit into the memory');
    assert.equal(reasonOf({}, 4), 'THREADS says so');
    assert.match(reasonOf({}, undefined, true), /^the demo should be small/);
    assert.match(reasonOf({ platform: 'darwin' }, 4), /^darwin does not distribute/);
  });

  it('is one if the services of the process have a database in memory, and says so if the setting is more', () => {
    const memory = { databaseUrl: 'sqlite::memory:', modules: ['gateway', 'hotel'] as const };
    check(memory, 1);
    check({ ...memory, threads: 2 }, 1, /database in memory \(DATABASE_URL\)/);
    check({ ...memory, modules: ['gateway'] }, 8);
  });
});
