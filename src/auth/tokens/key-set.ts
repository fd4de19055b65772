/** The key set of a provider: read at the start, again in the background and for unknown keys, and kept over outages. */
import type { JwtProvider } from '#config';
import { type Logger, messageOf } from '#foundation';
import type { KeySetState } from '../token-verifier.ts';
import { fetchKeys } from './fetch-keys.ts';
import { type Keys, keysOf, parseKeys } from './keys.ts';

export interface KeySet {
  /** Undefined if there has never been a key set. */
  readonly current: () => Keys | undefined;
  /** Resolves when there are keys, or when an attempt to read the first ones has failed. */
  readonly whenTried: () => Promise<unknown> | undefined;
  /** Reads the keys again, at most once in 30 s. Resolves to false if they were not read. */
  readonly refresh: () => Promise<boolean>;
  readonly state: () => KeySetState;
  readonly close: () => void;
}

export interface KeySetOptions {
  readonly logger: Pick<Logger, 'info' | 'warn'>;
  /** Returns milliseconds since the epoch. */
  readonly clock: () => number;
  /** Does not read the keys. */
  readonly dormant: boolean;
}

export function createKeySet(record: JwtProvider, options: KeySetOptions): KeySet {
  const { jwks, jwksUri } = record;
  if (jwksUri !== undefined) return createRemoteKeySet({ ...record, jwksUri }, options);
  const keys = keysOf(jwks?.keys ?? []);
  const state = { keys: keys.size, readAtMs: undefined, failures: 0, lastError: undefined };
  return {
    current: () => keys,
    whenTried: () => undefined,
    refresh: async () => false,
    state: () => state,
    close() {},
  };
}

/** An attacker can send tokens with unknown keys at any rate. */
const refreshMsMin = 30_000;
const firstRetryMs = 1000;
const retryMsMax = 30_000;

type RemoteProvider = Pick<JwtProvider, 'name' | 'cacheDurationMs'> & { readonly jwksUri: string };

function createRemoteKeySet({ name, jwksUri, cacheDurationMs }: RemoteProvider, options: KeySetOptions): KeySet {
  const { logger, clock, dormant } = options;
  const closing = new AbortController();
  let keys: Keys | undefined;
  let readAtMs: number | undefined;
  let lastError: KeySetState['lastError'];
  let [failures, failuresInARow] = [0, 0];
  let startedMs = Number.NEGATIVE_INFINITY;
  let running: Promise<boolean> | undefined;
  let timer: NodeJS.Timeout | undefined;

  function read(): Promise<boolean> {
    clearTimeout(timer);
    startedMs = performance.now();
    running ??= tryToRead().finally(() => {
      running = undefined;
      if (!closing.signal.aborted) timer = setTimeout(read, delayMs()).unref();
    });
    return running;
  }

  async function tryToRead(): Promise<boolean> {
    try {
      keys = parseKeys(await fetchKeys(jwksUri, closing.signal));
      succeeded(keys);
      return true;
    } catch (cause) {
      if (!closing.signal.aborted) failed(messageOf(cause));
      return false;
    }
  }

  function succeeded({ size }: Keys): void {
    readAtMs = clock();
    if (failuresInARow > 0)
      logger.info({ provider: name, keys: size }, 'the keys of the JwtProvider can be read again');
    if (size === 0)
      logger.warn({ provider: name }, 'the key set of the JwtProvider has no usable key: its tokens are rejected');
    failuresInARow = 0;
    lastError = undefined;
  }

  function failed(message: string): void {
    const isNew = message !== lastError?.message;
    failures += 1;
    failuresInARow += 1;
    lastError = { atMs: clock(), message };
    const consequence = keys === undefined ? 'its tokens get 503' : 'the last ones stay in use';
    if (isNew)
      logger.warn({ provider: name, reason: message }, `the keys of the JwtProvider cannot be read: ${consequence}`);
  }

  function delayMs(): number {
    if (failuresInARow === 0) return cacheDurationMs;
    const [first, most] = keys === undefined ? [firstRetryMs, retryMsMax] : [refreshMsMin, cacheDurationMs];
    return Math.min(most, first * 2 ** (failuresInARow - 1));
  }

  if (!dormant) void read();
  return {
    current: () => keys,
    whenTried: () => (keys === undefined ? running : undefined),
    async refresh() {
      return running ?? (performance.now() - startedMs >= refreshMsMin && read());
    },
    state: () => ({ keys: keys?.size, readAtMs, failures, lastError }),
    close() {
      closing.abort();
      clearTimeout(timer);
    },
  };
}
