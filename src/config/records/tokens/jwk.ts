/** Public keys that verify tokens: JSON Web Keys (RFC 7517), of which only the members of a public key are read. */
import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto';
import type { Fields } from '#foundation';
import type { Fault } from '../../errors.ts';

/** The members of the public keys that can verify a token, by key type. */
const publicMembers: Readonly<Record<string, readonly string[]>> = {
  RSA: ['kty', 'n', 'e'],
  EC: ['kty', 'crv', 'x', 'y'],
  OKP: ['kty', 'crv', 'x'],
};

/** Shorter RSA keys are unsafe (RFC 7518 section 3.3), and longer ones take too long. */
const rsaBitsMin = 2048;
const rsaBitsMax = 8192;

/** Returns undefined for a symmetric key, a key of an unknown type, and anything else that cannot verify a token. */
export function publicKeyOf(jwk: Fields): KeyObject | undefined {
  const { kty } = jwk;
  const members = typeof kty === 'string' && Object.hasOwn(publicMembers, kty) ? publicMembers[kty] : undefined;
  if (members === undefined) return undefined;
  try {
    const key = createPublicKey({
      format: 'jwk',
      key: Object.fromEntries(members.map((name) => [name, jwk[name]])) as JsonWebKey,
    });
    const { modulusLength: bits = rsaBitsMin } = key.asymmetricKeyDetails ?? {};
    return bits >= rsaBitsMin && bits <= rsaBitsMax ? key : undefined;
  } catch {
    return undefined;
  }
}

/** Members that only a private or a symmetric key has (RFC 7518 section 6). */
const secretMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv'];

export function publicKeyFault(jwk: Fields): Fault | undefined {
  if (secretMembers.some((name) => jwk[name] !== undefined)) {
    const remedy = 'Write the public key only, and treat the secret as known to others.';
    return { message: 'contains a private or a shared key', remedy };
  }
  if (publicKeyOf(jwk) !== undefined) return undefined;
  const remedy = `Write an RSA key of ${rsaBitsMin} to ${rsaBitsMax} bits, an EC key or an Ed25519 key as the issuer publishes it.`;
  return { message: 'is not a public key that can verify tokens', remedy };
}
