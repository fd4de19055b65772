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
  /** Whether it has another kind of Ambassador's that protects requests, so that nothing is known of which ones. */
  readonly mayGuardAll: boolean;
}

/** Guards nothing. */
export const noGuards: Guards = joinedGuards([], false);

export function joinedGuards(all: readonly Guards[], isSyntaxWrong: boolean): Guards {
  return {
    mappings: all.flatMap(({ mappings }) => mappings),
    hasUnknownMatch: isSyntaxWrong || all.some(({ hasUnknownMatch }) => hasUnknownMatch),
    mayAuthenticate: isSyntaxWrong || all.some(({ mayAuthenticate }) => mayAuthenticate),
    hasAuthService: all.some(({ hasAuthService }) => hasAuthService),
    mayGuardAll: all.some(({ mayGuardAll }) => mayGuardAll),
  };
}
