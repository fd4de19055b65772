/** The port of tokens (JWT, RFC 7519): finds the user whom the token of a request names. */
import type { IncomingHttpHeaders } from 'node:http';
import type { JwtProvider } from '#config';

/** The bearer of a token. */
export interface TokenUser {
  readonly kind: 'token-user';
  readonly name: string;
  /** The headers that its claims become, by lower-case name, as they are sent. */
  readonly headers: Readonly<Record<string, string>>;
  /** Returns a claim by its name or path, such as `realm_access.roles`. */
  readonly claimOf: ClaimOf;
}

export type ClaimOf = (path: string) => unknown;

/**
 * The result of checking a token:
 *
 * - `token-user`: the token is valid
 * - `token-refused`: it is not
 * - `token-unchecked`: it could not be checked. `reason` is for the log.
 */
export type TokenVerdict =
  | TokenUser
  | { readonly kind: 'token-refused'; readonly isExpired: boolean }
  | { readonly kind: 'token-unchecked'; readonly reason: string };

export interface TokenVerifier {
  /** Returns undefined if the request has no token. Synchronous for a token that is remembered. Never rejects. */
  readonly verdictOf: (request: {
    readonly headers: IncomingHttpHeaders;
    /** The path and query. */
    readonly url: string;
  }) => TokenVerdict | Promise<TokenVerdict> | undefined;
  /** Where it looks for tokens, in order: `the header authorization after "Bearer"`. */
  readonly places: readonly string[];
  /** The names of the providers. */
  readonly providers: readonly string[];
  /** The headers that claims may become. */
  readonly claimHeaders: readonly string[];
  /** The headers and the query parameters in which clients may send tokens. */
  readonly credentialHeaders: readonly string[];
  readonly credentialParams: readonly string[];
}

/** Counts tokens by result since the start. `valid` were verified, and `remembered` were not verified again. */
export interface TokenCounts {
  remembered: number;
  valid: number;
  invalid: number;
  unknownKey: number;
  unavailable: number;
}

/** The state of a provider, for the diagnostics. */
export interface TokenProviderState {
  readonly record: JwtProvider;
  readonly counts: Readonly<TokenCounts>;
  readonly keySet: KeySetState;
  readonly lastRejected: { readonly atMs: number; readonly reason: string } | undefined;
}

export interface KeySetState {
  /** The number of usable keys. Undefined if there has never been a key set. */
  readonly keys: number | undefined;
  /** When they were last read, in milliseconds since the epoch. Undefined for keys in the record. */
  readonly readAtMs: number | undefined;
  /** The failed attempts to read them since the start. */
  readonly failures: number;
  /** The last attempt, if it failed. */
  readonly lastError: { readonly atMs: number; readonly message: string } | undefined;
}
