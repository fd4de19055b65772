/** The names of users, password hashes and API keys as text: what users.yaml holds and the authenticator checks. */

export {
  type ApiKey,
  digestOfKey,
  formatKey,
  isKeyDigest,
  isKeyName,
  keyDigestForm,
  keyLengthMax,
  keyNameForm,
  userKeysMax,
} from './api-key.ts';

/** The cost parameters of scrypt: memory is about 128 · 2^ln · r bytes, and time grows with 2^ln · r · p. */
export interface ScryptCost {
  readonly ln: number;
  readonly r: number;
  readonly p: number;
}

export interface PasswordHash {
  readonly cost: ScryptCost;
  readonly salt: Uint8Array;
  readonly hash: Uint8Array;
}

/**
 * Accepts printable ASCII without leading or trailing spaces, because the name becomes a header value (RFC 9110
 * section 5.5). Encoding other names would let two users share an identity behind a proxy that decodes them.
 * Rejects colons because Basic authentication cannot send them (RFC 7617 section 2).
 */
export function isUserName(name: string): boolean {
  return userNameForm.test(name);
}

export const userNameForm = /^[!-9;-~](?:[ -9;-~]*[!-9;-~])?$/;

export const passwordHashForm =
  /^\$scrypt\$ln=([1-9]\d?),r=([1-9]\d?),p=([1-9]\d?)\$([A-Za-z0-9+/]{1,128})\$([A-Za-z0-9+/]{1,128})$/;

/**
 * Parses a PHC string, in which salt and hash are base64 without padding (github.com/P-H-C/phc-string-format).
 * Returns undefined for any other format, and for costs or lengths outside the safe range: ln 1 to 20, r 1 to 32,
 * p 1 to 16, at most 1 GiB of memory, 8 to 64 bytes of salt, 16 to 64 bytes of hash.
 */
export function parsePasswordHash(text: string): PasswordHash | undefined {
  const [, ln, r, p, salt64, hash64] = passwordHashForm.exec(text) ?? [];
  const cost = { ln: Number(ln), r: Number(r), p: Number(p) };
  const salt = decode(salt64, 8, 64);
  const hash = decode(hash64, 16, 64);
  if (salt === undefined || hash === undefined || !isUsable(cost)) return undefined;
  return Object.freeze({ cost: Object.freeze(cost), salt, hash });
}

/** The opposite of `parsePasswordHash`. */
export function formatPasswordHash({ cost, salt, hash }: PasswordHash): string {
  return `$scrypt$ln=${cost.ln},r=${cost.r},p=${cost.p}$${encodeUnpadded(salt)}$${encodeUnpadded(hash)}`;
}

const memoryBytesMax = 2 ** 30;

function isUsable({ ln, r, p }: ScryptCost): boolean {
  // RFC 7914 section 2 requires N < 2^(128 · r / 8), and OpenSSL rejects anything else.
  return ln <= 20 && ln < 16 * r && r <= 32 && p <= 16 && 128 * 2 ** ln * r <= memoryBytesMax;
}

function decode(base64: string | undefined, bytesMin: number, bytesMax: number): Uint8Array | undefined {
  const bytes = Buffer.from(base64 ?? '', 'base64');
  const usable = bytes.length >= bytesMin && bytes.length <= bytesMax && encodeUnpadded(bytes) === base64;
  return usable ? bytes : undefined;
}

/** Encodes as base64 without padding, the encoding of PHC strings. */
export function encodeUnpadded(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64').replace(/=+$/, '');
}
