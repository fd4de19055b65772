/** Remembers verified tokens, because a verification takes as long as all other work for a request. */
import { hash, randomBytes } from 'node:crypto';
import { createBoundedMap } from '#foundation';
import type { TokenUser } from '../token-verifier.ts';
import type { Provider } from './provider.ts';

export interface VerifiedToken {
  readonly provider: Provider;
  /** The key that verified it. */
  readonly thumbprint: string;
  readonly user: TokenUser;
  /** Milliseconds since the epoch. */
  readonly untilMs: number;
}

/** Longer tokens are verified each time, so that a full memory stays within a few megabytes. */
const lengthMax = 4096;

export interface VerifiedTokensOptions {
  /** Beyond this number, the token that was verified first is forgotten. */
  readonly entriesMax: number;
  /** Returns milliseconds since the epoch. */
  readonly clock: () => number;
}

export function createVerifiedTokens({ entriesMax, clock }: VerifiedTokensOptions) {
  const secret = randomBytes(32).toString('base64');
  const entries = createBoundedMap<string, VerifiedToken>(entriesMax);
  return Object.freeze({
    /** Returns a key that does not reveal the token, as for passwords. */
    keyOf: (token: string) => hash('sha256', secret + token, 'base64'),
    /** Returns undefined once the token has ended, or its key has left the set of its issuer. */
    find(key: string): VerifiedToken | undefined {
      const entry = entries.get(key);
      return entry !== undefined && clock() < entry.untilMs && entry.provider.hasKey(entry.thumbprint)
        ? entry
        : undefined;
    },
    add(key: string, token: string, entry: VerifiedToken): void {
      if (token.length <= lengthMax) entries.set(key, entry);
    },
  });
}
