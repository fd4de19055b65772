/** A provider of tokens: verifies them with the keys of its issuer, as its record says. */
import type * as Jose from 'jose';
import type { JwtProvider } from '#config';
import { createOncePerMinute, type Fields } from '#foundation';
import type { TokenCounts, TokenProviderState, TokenUser } from '../token-verifier.ts';
import { claimAt, identityOf } from './claims.ts';
import { createKeySet, type KeySetOptions } from './key-set.ts';
import type { Key, Keys } from './keys.ts';

/**
 * The result of a verification:
 *
 * - `valid`: with the key, and until when the result may be remembered, in milliseconds since the epoch
 * - `invalid`: `reason` is for operators
 * - `unknown-key`: no key of the issuer has signed it
 * - `unavailable`: there has never been a key set
 */
export type Verified =
  | { readonly kind: 'valid'; readonly user: TokenUser; readonly thumbprint: string; readonly untilMs: number }
  | { readonly kind: 'invalid'; readonly reason: string; readonly isExpired: boolean }
  | { readonly kind: 'unknown-key' }
  | { readonly kind: 'unavailable' };

export interface Provider {
  readonly record: JwtProvider;
  readonly counts: TokenCounts;
  /** Expects a token of this issuer. */
  readonly verify: (token: string, header: TokenHeader) => Promise<Verified>;
  readonly hasKey: (thumbprint: string) => boolean;
  readonly state: () => TokenProviderState;
  readonly close: () => void;
}

/** What a token says of its signature. */
export interface TokenHeader {
  readonly alg: string;
  readonly kid: string | undefined;
}

export interface ProviderOptions extends KeySetOptions {
  readonly jose: Pick<typeof Jose, 'jwtVerify' | 'errors'>;
  readonly counts: TokenCounts;
}

/** Bounds how long a token works after its issuer has revoked it, apart from its own end. */
const rememberMsMax = 600_000;

export function createProvider(record: JwtProvider, options: ProviderOptions): Provider {
  const { jose, logger, clock, counts } = options;
  const { errors } = jose;
  const keySet = createKeySet(record, options);
  const mayLog = createOncePerMinute();
  let lastRejected: TokenProviderState['lastRejected'];

  const claimRules = {
    issuer: record.issuer,
    ...(record.audiences.length > 0 && { audience: [...record.audiences] }),
    algorithms: [...record.algorithms],
    requiredClaims: record.requireExpiration ? ['exp'] : [],
    clockTolerance: record.clockSkewMs / 1000,
  };

  async function verify(token: string, header: TokenHeader): Promise<Verified> {
    if (!record.algorithms.includes(header.alg)) return invalid('its algorithm is not one of those in the record');
    await keySet.whenTried();
    const keys = keySet.current();
    if (keys === undefined) return { kind: 'unavailable' };
    const found = await tryKeys(token, header, keys);
    if (found.kind !== 'unknown-key' || !(await keySet.refresh())) return found;
    return tryKeys(token, header, keySet.current() ?? keys);
  }

  async function tryKeys(token: string, header: TokenHeader, keys: Keys): Promise<Verified> {
    const candidates = keys.candidates(header.alg, header.kid);
    for (const candidate of candidates) {
      const found = await tryKey(token, candidate);
      if (found !== undefined) return found;
    }
    // Without a `kid`, the token may be of a key that is not in the set yet.
    return header.kid === undefined || candidates.length === 0
      ? { kind: 'unknown-key' }
      : invalid('its signature is wrong');
  }

  /** Resolves to undefined if the key has not signed the token. */
  async function tryKey(token: string, { key, thumbprint }: Key): Promise<Verified | undefined> {
    try {
      const currentDate = new Date(clock());
      const { payload } = await jose.jwtVerify(token, key, { ...claimRules, currentDate });
      return accepted(payload, thumbprint, currentDate.getTime());
    } catch (error) {
      if (error instanceof errors.JWSSignatureVerificationFailed || !(error instanceof errors.JOSEError))
        return undefined;
      return invalid(error.message, error instanceof errors.JWTExpired);
    }
  }

  function accepted(claims: Fields & { readonly exp?: number }, thumbprint: string, nowMs: number): Verified {
    const identity = identityOf(claims, record);
    if (typeof identity === 'string') return invalid(identity);
    const { user: name, headers } = identity;
    const claimOf = (path: string) => claimAt(claims, path);
    const user: TokenUser = Object.freeze({ kind: 'token-user', name, headers: Object.freeze(headers), claimOf });
    const endsMs = claims.exp === undefined ? Number.POSITIVE_INFINITY : claims.exp * 1000;
    return { kind: 'valid', user, thumbprint, untilMs: Math.min(endsMs, nowMs + rememberMsMax) };
  }

  function invalid(reason: string, isExpired = false): Verified {
    lastRejected = { atMs: clock(), reason };
    // Clients renew tokens when they are told that one has expired.
    if (!isExpired && mayLog()) logger.warn({ provider: record.name, reason }, 'a token was rejected');
    return { kind: 'invalid', reason, isExpired };
  }

  return Object.freeze({
    record,
    counts,
    verify,
    hasKey: (thumbprint: string) => keySet.current()?.has(thumbprint) === true,
    state: () => ({ record, counts, keySet: keySet.state(), lastRejected }),
    close: keySet.close,
  });
}
