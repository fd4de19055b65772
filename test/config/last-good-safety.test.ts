/** Random sequences of changes with mistakes: no reload opens requests that the files mean to protect. */
import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { type Configuration, configurationFrom, finish, keepLastGood, loadConfiguration, mapInParts } from '#config';
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

const rarely = (value: number) => fc.integer({ min: 1, max: value }).map((drawn) => drawn === 1);
const entry: fc.Arbitrary<Entry> = fc.record({
  file: fc.constantFrom(...files, ...files, undefined),
  isRenamed: rarely(4),
  isMoved: rarely(4),
  isOpen: fc.boolean(),
  mistake: fc.constantFrom(...mistakes, undefined, undefined, undefined, undefined),
});
/** The records that change together, and a file that is not valid YAML until the next change. */
const change = fc.record({
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

type Outcome = 'open' | 'guarded' | 'blocked' | 'none';

/** Returns what the mapping with the longest matching prefix does. */
function outcomeOf(path: string, candidates: readonly (readonly [prefix: string, outcome: Outcome])[]): Outcome {
  const matching = candidates.filter(([prefix]) => prefix === path || prefix === '/');
  return matching.sort(([one], [other]) => other.length - one.length)[0]?.[1] ?? 'none';
}

function served({ mappings, blocked, authServices }: Configuration, path: string): Outcome {
  return outcomeOf(path, [
    ...blocked.map(({ prefix }) => [prefix, 'blocked'] as const),
    ...mappings.map(
      ({ prefix, bypassAuth }) => [prefix, bypassAuth || authServices.length === 0 ? 'open' : 'guarded'] as const,
    ),
  ]);
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

describe('keepLastGood', () => {
  const writeFiles = temporaryFiles();

  it('never opens requests that are closed and that the files mean to protect', async () => {
    const directory = await writeFiles({ 'services/none.yaml': '# none\n' });
    const policy = {
      directory,
      settings: { host: '127.0.0.1', allowDemoUsers: false },
      findUnservable: () => mapInParts([], (error) => error),
    };

    async function write(entries: Entries, garbledFile: string | undefined): Promise<void> {
      for (const file of files) {
        const text = recordsIn(entries, file) + (file === garbledFile ? '\n{ x: y: z' : '');
        if (text !== '') await writeFile(join(directory, file), text);
        else await rm(join(directory, file), { force: true });
      }
    }

    async function reload(current: Configuration): Promise<Configuration> {
      const loaded = await loadConfiguration(directory);
      return finish(keepLastGood(loaded, current, policy)).configuration;
    }

    const sequence = fc.asyncProperty(fc.array(change, { minLength: 2, maxLength: 8 }), async (changes) => {
      let current = configurationFrom({ records: [] }).configuration;
      let entries: Entries = {};
      for (const { entries: changed, garbledFile } of changes) {
        entries = { ...entries, ...changed };
        await write(entries, garbledFile);
        const next = await reload(current);
        assert.deepEqual(openedByMistake(entries, current, next), []);
        current = next;
      }
    });
    // The same sequences in each run, because a failure at random would not point to the change that caused it.
    await fc.assert(sequence, { seed: 1, numRuns: 200 });
  });
});

/** Returns the text of a file without the mistakes of YAML itself. */
function recordsIn(entries: Entries, file: string): string {
  const records = slots.flatMap((slot) => {
    const one = entries[slot];
    return one?.file === file ? [recordOf(slot, one)] : [];
  });
  return yamlOf(...records);
}

/** Returns the paths that were closed, are open now, and are meant to be guarded. */
function openedByMistake(entries: Entries, before: Configuration, now: Configuration): readonly string[] {
  return paths.filter(
    (path) =>
      ['guarded', 'none'].includes(served(before, path)) &&
      served(now, path) === 'open' &&
      intended(entries, path) === 'guarded',
  );
}
