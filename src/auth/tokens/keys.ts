/** The public keys of an issuer: reads a key set, and finds the keys that may have signed a token. */
import { hash, type KeyObject } from 'node:crypto';
import { publicKeyOf } from '#config';
import { type Fields, isMap } from '#foundation';

/** A key with the conditions under which it verifies a token (RFC 7517 section 4). */
export interface Key {
  /** The same for equal keys with equal conditions. */
  readonly thumbprint: string;
  readonly key: KeyObject;
  readonly kid: string | undefined;
  readonly alg: string | undefined;
  /** `RSA`, `P-256`, `Ed25519`. */
  readonly type: string;
}

export interface Keys {
  readonly size: number;
  /** Returns at most as many keys as are tried for a token. */
  readonly candidates: (alg: string, kid: string | undefined) => readonly Key[];
  readonly has: (thumbprint: string) => boolean;
}

const keysMax = 100;

/** How many keys are tried for a token without `kid`. */
const candidatesMax = 10;

/** Ignores keys that cannot verify tokens, such as those for encryption. Throws an Error if the text is not a key set. */
export function parseKeys(text: string): Keys {
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch {
    throw new Error('the response is not JSON');
  }
  if (!isMap(found) || !Array.isArray(found['keys']) || !found['keys'].every(isMap))
    throw new Error('the response is not a key set: it has no list "keys"');
  return keysOf(found['keys']);
}

export function keysOf(jwks: readonly Fields[]): Keys {
  if (jwks.length > keysMax) throw new Error(`the key set has ${jwks.length} keys, and at most ${keysMax} are read`);
  const keys = jwks.flatMap((jwk) => readKey(jwk) ?? []);
  const thumbprints = new Set(keys.map(({ thumbprint }) => thumbprint));
  return Object.freeze({
    size: keys.length,
    candidates(alg: string, kid: string | undefined) {
      const type = typeOfAlgorithm[alg];
      const fits = (one: Key) =>
        one.type === type && (one.alg === undefined || one.alg === alg) && (kid === undefined || one.kid === kid);
      return keys.filter(fits).slice(0, candidatesMax);
    },
    has: (thumbprint: string) => thumbprints.has(thumbprint),
  });
}

const typeOfAlgorithm: Readonly<Record<string, string>> = {
  RS256: 'RSA',
  RS384: 'RSA',
  RS512: 'RSA',
  PS256: 'RSA',
  PS384: 'RSA',
  PS512: 'RSA',
  ES256: 'P-256',
  ES384: 'P-384',
  ES512: 'P-521',
  EdDSA: 'Ed25519',
};

function readKey(jwk: Fields): Key | undefined {
  const { kid, alg, use, key_ops: operations, kty, crv } = jwk;
  const isForSignatures = use === undefined || use === 'sig';
  const mayVerify = operations === undefined || (Array.isArray(operations) && operations.includes('verify'));
  if (!isForSignatures || !mayVerify) return undefined;
  const key = publicKeyOf(jwk);
  if (key === undefined) return undefined;
  const conditions = [textOrNone(kid), textOrNone(alg)] as const;
  const spki = key.export({ format: 'der', type: 'spki' }).toString('base64');
  return {
    thumbprint: hash('sha256', JSON.stringify([spki, ...conditions]), 'base64'),
    key,
    kid: conditions[0],
    alg: conditions[1],
    type: kty === 'RSA' ? 'RSA' : String(crv),
  };
}

function textOrNone(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
