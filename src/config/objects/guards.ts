/** What an object may protect, in case that it is refused: whatever it would have guarded is closed. */
import type { Mapping } from '../records/mapping.ts';

export interface Guards {
  /** Its Mappings as far as their match can be read, with a `refusal`. */
  readonly mappings: readonly Mapping[];
  /** Whether it may have Mappings whose match cannot be read, so that any open Mapping might let their requests through. */
  readonly hasUnknownMatch: boolean;
  /** Whether it has or may have an AuthService. */
  readonly mayAuthenticate: boolean;
  readonly hasAuthService: boolean;
  /** Whether it has an AuthService that is the default, as far as can be read. */
  readonly hasDefault: boolean;
  /** The domains for which it may have a RateLimitService that rejects what it cannot count. Undefined for any domain. */
  readonly deniedDomains: readonly (string | undefined)[];
  /** Whether it has another kind of Ambassador's that protects requests, so that nothing is known of which ones. */
  readonly mayGuardAll: boolean;
}

/** Guards nothing. */
export const noGuards: Guards = joinedGuards([]);

export function joinedGuards(all: readonly Guards[]): Guards {
  return {
    mappings: all.flatMap(({ mappings }) => mappings),
    hasUnknownMatch: all.some(({ hasUnknownMatch }) => hasUnknownMatch),
    mayAuthenticate: all.some(({ mayAuthenticate }) => mayAuthenticate),
    hasAuthService: all.some(({ hasAuthService }) => hasAuthService),
    hasDefault: all.some(({ hasDefault }) => hasDefault),
    deniedDomains: all.flatMap(({ deniedDomains }) => deniedDomains),
    mayGuardAll: all.some(({ mayGuardAll }) => mayGuardAll),
  };
}
