/** Random configurations with mistakes: a start ends, and a reload changes nothing, so that nothing opens by mistake. */
import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import {
  accept,
  type Configuration,
  configurationFrom,
  loadConfiguration,
  requireConfiguration,
  requireSettings,
} from '#config';
import { settingTable } from '#server/product';
import { authRecord, mappingRecord } from '../support/desks.ts';
import { temporaryFiles, yamlOf } from '../support/temporary-files.ts';

const files = ['services/a.yaml', 'services/b.yaml'] as const;

/** What an administrator means to write, and the mistake that is in it. */
interface Entry {
  /** Undefined if the record is removed. */
  readonly file: (typeof files)[number] | undefined;
  readonly isRenamed: boolean;
  /** The path of a mapping differs too. */
  readonly isMoved: boolean;
  readonly isOpen: boolean;
  readonly mistake: Mistake | undefined;
}

const mistakes = ['value', 'key', 'name', 'kind', 'service'] as const;
type Mistake = (typeof mistakes)[number];

/** One AuthService, and mappings for every path and for two single paths. */
const slots = ['auth', '/', '/1', '/2'] as const;
type Slot = (typeof slots)[number];
type Entries = Readonly<Partial<Record<Slot, Entry>>>;

const prefixOf = (slot: Slot, { isMoved }: Entry) => (isMoved && slot !== '/' ? `${slot}-moved` : slot);
const paths = ['/1', '/1-moved', '/2', '/2-moved', '/other'];

const rarely = fc.constantFrom(true, false, false, false);
const entry: fc.Arbitrary<Entry> = fc.record({
  file: fc.constantFrom(...files, ...files, undefined),
  isRenamed: rarely,
  isMoved: rarely,
  isOpen: fc.boolean(),
  mistake: fc.constantFrom(...mistakes, ...Array.from({ length: 20 }, () => undefined)),
});
/** The records that change together, and a file that is not valid YAML until the next change. */
interface Change {
  readonly entries: Entries;
  readonly garbledFile: (typeof files)[number] | undefined;
}

const change: fc.Arbitrary<Change> = fc.record({
  entries: fc.dictionary(fc.constantFrom(...slots), entry, { minKeys: 1 }),
  garbledFile: fc.constantFrom(...files, ...Array.from({ length: 8 }, () => undefined)),
});

function recordOf(slot: Slot, one: Entry): object {
  const name = `${slot === 'auth' ? 'auth' : `m${slot.slice(1)}`}${one.isRenamed ? '-renamed' : ''}`;
  const record: Record<string, unknown> =
    slot === 'auth'
      ? { ...authRecord, name }
      : { ...mappingRecord(name, prefixOf(slot, one), 'own', { bypass_auth: one.isOpen }) };
  switch (one.mistake) {
    case 'value':
      return { ...record, timeout_ms: 'soon' };
    case 'key':
      return { ...record, unknown: 1 };
    case 'name':
      return { ...record, name: undefined };
    case 'kind':
      return { ...record, kind: 'Maping' };
    case 'service':
      return { ...record, [slot === 'auth' ? 'auth_service' : 'service']: '' };
    default:
      return record;
  }
}

type Outcome = 'open' | 'guarded' | 'none';

/** Returns what the mapping with the longest matching prefix does. */
function outcomeOf(path: string, candidates: readonly (readonly [prefix: string, outcome: Outcome])[]): Outcome {
  const matching = candidates.filter(([prefix]) => prefix === path || prefix === '/');
  return matching.sort(([one], [other]) => other.length - one.length)[0]?.[1] ?? 'none';
}

function served({ mappings, authServices }: Configuration, path: string): Outcome {
  return outcomeOf(
    path,
    mappings.map(
      ({ prefix, bypassAuth }) => [prefix, bypassAuth || authServices.length === 0 ? 'open' : 'guarded'] as const,
    ),
  );
}

function intended(entries: Entries, path: string): Outcome {
  const isGuarded = entries.auth?.file !== undefined;
  const mappings = slots.flatMap((slot) => {
    const one = entries[slot];
    if (slot === 'auth' || one?.file === undefined) return [];
    return [[prefixOf(slot, one), isGuarded && !one.isOpen ? 'guarded' : 'open'] as const];
  });
  return outcomeOf(path, mappings);
}

describe('a configuration with mistakes', () => {
  const writeFiles = temporaryFiles();
  let directory: string;

  beforeEach(async () => {
    directory = await writeFiles({ 'services/none.yaml': '# none\n' });
  });

  async function write({ entries, garbledFile }: Change): Promise<void> {
    for (const file of files) {
      const text = recordsIn(entries, file) + (file === garbledFile ? '\n{ x: y: z' : '');
      if (text !== '') await writeFile(join(directory, file), text);
      else await rm(join(directory, file), { force: true });
    }
  }

  /** Uses the same values in each run, because a failure at random would not point to the change that caused it. */
  const check = (property: fc.IAsyncProperty<unknown>) => fc.assert(property, { seed: 1, numRuns: 120 });

  it('changes nothing on a reload unless all of it is right, and then does what the files say', async () => {
    const policy = {
      directory,
      settings: { host: '127.0.0.1', allowDemoUsers: false },
      findUnservable: () => [],
    };
    const changes = fc.array(change, { minLength: 2, maxLength: 8 });
    let accepted = 0;
    const reload = async (files: Change, current: Configuration) => {
      await write(files);
      const { configuration: next, refusals } = accept(await loadConfiguration(directory), current, policy);
      if (refusals.length > 0) {
        assert.deepEqual(next, current);
        return current;
      }
      accepted += 1;
      assertIntended(files, next);
      return next;
    };
    const reloads = async (sequence: readonly Change[]) => {
      let current = configurationFrom({ records: [] }).configuration;
      let entries: Entries = {};
      for (const { entries: changed, garbledFile } of sequence) {
        entries = { ...entries, ...changed };
        current = await reload({ entries, garbledFile }, current);
      }
    };
    await check(fc.asyncProperty(changes, reloads));
    assert.ok(accepted > 50, String(accepted));
  });

  it('does not start, and without mistakes does what the files say', async () => {
    let starts = 0;
    const start = async (files: Change) => {
      await write(files);
      const loaded = await requireConfiguration(directory, requireSettings(settingTable, {})).catch(() => undefined);
      if (loaded === undefined) return;
      starts += 1;
      assertIntended(files, loaded.configuration);
    };
    await check(fc.asyncProperty(change, start));
    assert.ok(starts > 20, String(starts));
  });
});

/** Checks that the files have no mistake, and that the configuration does what they mean. */
function assertIntended({ entries, garbledFile }: Change, configuration: Configuration): void {
  const written = Object.values(entries).filter(({ file }) => file !== undefined);
  assert.ok(garbledFile === undefined && written.every(({ mistake }) => mistake === undefined));
  for (const path of paths) assert.equal(served(configuration, path), intended(entries, path), path);
}

/** Returns the text of a file without the mistakes of YAML itself. */
function recordsIn(entries: Entries, file: string): string {
  const records = slots.flatMap((slot) => {
    const one = entries[slot];
    return one?.file === file ? [recordOf(slot, one)] : [];
  });
  return yamlOf(...records);
}
