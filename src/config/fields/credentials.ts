/** What a user's name and password hash may be: one set of bounds for the check of the files and for the auth service. */

/** What one hash costs: memory is about 128 · 2^ln · r bytes, time grows with 2^ln · r · p. */
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
 * A name becomes the value of a header, so it is printable ASCII without a space at either end (RFC 9110
 * section 5.5): encoding other names would let two users share an identity behind a proxy that decodes.
 * It has no colon, since Basic could not send it (RFC 7617 section 2).
 */
export function isUserName(name: string): boolean {
  return /^[!-~](?:[ -~]*[!-~])?$/.test(name) && !name.includes(':');
}

const phc = /^\$scrypt\$ln=([1-9]\d?),r=([1-9]\d?),p=([1-9]\d?)\$([A-Za-z0-9+/]{1,128})\$([A-Za-z0-9+/]{1,128})$/;

/**
 * Reads a PHC string; salt and hash are base64 without padding (github.com/P-H-C/phc-string-format).
 * Returns undefined for another form, and for costs or lengths that are unsafe to use: ln 1 to 20, r 1 to 32,
 * p 1 to 16, at most 1 GiB of memory, 8 to 64 bytes of salt, 16 to 64 bytes of hash.
 */
export function parsePasswordHash(text: string): PasswordHash | undefined {
  const [, ln, r, p, salt64, hash64] = phc.exec(text) ?? [];
  const cost = { ln: Number(ln), r: Number(r), p: Number(p) };
  const salt = decode(salt64, 8, 64);
  const hash = decode(hash64, 16, 64);
  if (salt === undefined || hash === undefined || !isUsable(cost)) return undefined;
  return Object.freeze({ cost: Object.freeze(cost), salt, hash });
}

const memoryBytesMax = 2 ** 30;

function isUsable({ ln, r, p }: ScryptCost): boolean {
  // RFC 7914 section 2: N is less than 2^(128 · r / 8); OpenSSL refuses the rest.
  return ln <= 20 && ln < 16 * r && r <= 32 && p <= 16 && 128 * 2 ** ln * r <= memoryBytesMax;
}

function decode(base64: string | undefined, bytesMin: number, bytesMax: number): Uint8Array | undefined {
  const bytes = Buffer.from(base64 ?? '', 'base64');
  const usable = bytes.length >= bytesMin && bytes.length <= bytesMax && encodeUnpadded(bytes) === base64;
  return usable ? bytes : undefined;
}

/** Base64 without padding, as PHC strings have it. */
export function encodeUnpadded(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64').replace(/=+$/, '');
}
