/** API keys as text: their names and digests, and new keys. */
import { hash } from 'node:crypto';

/** The name of a key and the SHA-256 digest of the key itself, in 64 lower-case hexadecimal digits. */
export interface ApiKey {
  readonly name: string;
  readonly sha256: string;
}

/** A user with more keys than this is more likely to be several users. */
export const userKeysMax = 16;

/** Longer than any usual key, and short enough to be hashed for every request. */
export const keyLengthMax = 512;

/** Accepts names that need no quotes in YAML, headers and logs. */
export function isKeyName(name: string): boolean {
  return keyNameForm.test(name);
}

export const keyNameForm = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

export function isKeyDigest(text: string): boolean {
  return keyDigestForm.test(text);
}

export const keyDigestForm = /^[0-9a-f]{64}$/;

/**
 * Expects a character for each byte, as Node reads headers. The plain digest is enough: a random key of 256 bits cannot
 * be guessed, however fast the hash is.
 */
export function digestOfKey(key: string): string {
  return hash('sha256', Buffer.from(key, 'latin1'), 'hex');
}

/** Starts with a prefix by which scanners find keys in repositories and logs. `random`: 32 unpredictable bytes. */
export function formatKey(random: Uint8Array): string {
  return `fd_${Buffer.from(random).toString('base64url')}`;
}
