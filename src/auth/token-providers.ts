/** The providers of tokens. What verifies tokens is loaded when a record needs it. */
import type { JwtProvider } from '#config';
import type { Logger } from '#foundation';
import type { TokenProviderState, TokenVerifier } from './token-verifier.ts';

/** The providers of one configuration. */
export interface OpenTokenProviders {
  /** Undefined if there is none of these names. */
  readonly verifierOf: (names: readonly string[]) => TokenVerifier | undefined;
  /** Closes those that no other configuration uses. */
  readonly close: () => void;
}

export interface TokenProviders {
  /** Begins to read their keys. Those that are open with an equal record keep theirs. */
  readonly open: (records: readonly JwtProvider[]) => Promise<OpenTokenProviders>;
  readonly states: () => readonly TokenProviderState[];
  /** The number of tokens that are of no provider, or malformed. */
  readonly unknown: () => number;
  readonly close: () => void;
}

export interface TokenProvidersOptions {
  readonly logger: Pick<Logger, 'info' | 'warn'>;
  /** Returns milliseconds since the epoch. @default Date.now */
  readonly clock?: () => number;
  /** Does not read any keys. @default false */
  readonly dormant?: boolean;
  /** How many verified tokens are remembered. @default 10_000 */
  readonly entriesMax?: number;
}

/** Loads nothing until there is a record. */
export function createTokenProviders(options: TokenProvidersOptions): TokenProviders {
  let loading: ReturnType<typeof load> | undefined;
  let loaded: Awaited<ReturnType<typeof load>> | undefined;
  return Object.freeze({
    async open(records: readonly JwtProvider[]) {
      if (records.length === 0) return noProviders;
      loading ??= load(options);
      loaded = await loading;
      return loaded.open(records);
    },
    states: () => loaded?.states() ?? [],
    unknown: () => loaded?.unknown() ?? 0,
    close: () => loaded?.close(),
  });
}

export const verifiedTokensMaxDefault = 10_000;

async function load(options: TokenProvidersOptions) {
  const { logger, clock = Date.now, dormant = false, entriesMax = verifiedTokensMaxDefault } = options;
  const [jose, { createProviderRegistry }] = await Promise.all([import('jose'), import('./tokens/registry.ts')]);
  return createProviderRegistry({ logger, clock, dormant, entriesMax, jose });
}

const noProviders: OpenTokenProviders = Object.freeze({ verifierOf: () => undefined, close() {} });
