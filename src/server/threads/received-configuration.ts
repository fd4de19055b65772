/** The configuration of a thread, which it receives from the main thread in parts, prepares, and then takes into use. */
import { type Configuration, freezeDeep } from '#config';
import type { Commit, Generation, LiveConfiguration, Prepare } from '../reload.ts';

/** What the main thread knows about the files. */
export type ReloadState = {
  readonly [Name in 'refused' | 'errors' | 'notices' | 'reloads']: ReturnType<LiveConfiguration[Name]>;
};

/** The identity of a generation, without its configuration. */
export type GenerationName = Omit<Generation, 'configuration'>;

/** Some items of one list of a configuration, or the whole of what is no list. */
export interface Part {
  readonly name: string;
  readonly value: unknown;
}

/** How the main thread changes the configuration. */
export interface ConfigurationFunctions {
  readonly receive: (part: Part) => void;
  /** Prepares the received parts. Rejects if a part of the server cannot use the configuration. */
  readonly prepare: () => Promise<void>;
  readonly commit: (generation: GenerationName) => void;
  readonly report: (state: ReloadState) => void;
}

export interface ReceivedConfiguration {
  readonly live: LiveConfiguration;
  readonly functions: ConfigurationFunctions;
}

export function createReceivedConfiguration(initial: Generation, initialState: ReloadState): ReceivedConfiguration {
  const parts: Prepare[] = [];
  let received = new Map<string, unknown>();
  let prepared: { readonly configuration: Configuration; readonly commits: readonly Commit[] } | undefined;
  let current = freezeDeep({ ...initial });
  let state = initialState;

  return {
    live: Object.freeze({
      current: () => current,
      refused: () => state.refused,
      errors: () => state.errors,
      notices: () => state.notices,
      kubernetes: () => undefined,
      reloads: () => state.reloads,
      onChange: (prepare: Prepare) => void parts.push(prepare),
      // The main thread watches and reads the files.
      watch: async () => {},
      reload: async () => {},
      close: async () => {},
    }),
    functions: {
      receive({ name, value }) {
        // Here, because freezing all records at once would block the event loop for long.
        freezeDeep(value);
        const known = received.get(name);
        received.set(name, Array.isArray(known) && Array.isArray(value) ? [...known, ...value] : value);
      },
      async prepare() {
        const configuration = Object.freeze(Object.fromEntries(received)) as unknown as Configuration;
        received = new Map();
        const commits: Commit[] = [];
        for (const part of parts) commits.push(await part(configuration));
        prepared = { configuration, commits };
      },
      commit(generation) {
        if (prepared === undefined) throw new Error('no configuration has been prepared');
        const { configuration, commits } = prepared;
        prepared = undefined;
        current = Object.freeze({ ...generation, configuration });
        for (const commit of commits) commit(current);
      },
      report(next) {
        state = freezeDeep(next);
      },
    },
  };
}

/** The maximum number of items in a part. */
const itemsMax = 500;

/** Splits a configuration, so that a thread can serve requests between the messages with its parts. */
export function* splitConfiguration(configuration: Configuration): Generator<Part> {
  for (const [name, value] of Object.entries(configuration)) {
    if (!Array.isArray(value)) yield { name, value };
    else
      for (let start = 0; start === 0 || start < value.length; start += itemsMax)
        yield { name, value: value.slice(start, start + itemsMax) };
  }
}
