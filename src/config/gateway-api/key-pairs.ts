/** The certificates and keys in Secrets, of which a broken one keeps its last valid version. */
import type { ClusterObject } from '../objects/object.ts';
import { certificateFault, type KeyPair } from '../tls/pem.ts';

export interface SecretPair {
  /** The last valid one, as long as this Secret exists. Undefined if there was none. */
  readonly pair: KeyPair | undefined;
  /** What is wrong with the current one. */
  readonly fault: string | undefined;
}

export interface KeyPairs {
  readonly pairOf: (secret: ClusterObject) => SecretPair;
  /** Forgets what is in none of these objects. */
  readonly keep: (objects: readonly ClusterObject[]) => void;
}

interface Known extends SecretPair {
  readonly value: unknown;
}

/** Reading a key takes longer than all the rest, so a Secret is read again only if it has changed. */
export function createKeyPairs(): KeyPairs {
  const known = new Map<string, Known>();

  return {
    pairOf(secret) {
      const before = known.get(secret.uid);
      if (before !== undefined && before.value === secret.value) return before;
      const pair = keyPairIn(secret);
      const fault = certificateFault(pair.cert, pair.key);
      const found = { value: secret.value, pair: fault === undefined ? pair : before?.pair, fault };
      known.set(secret.uid, found);
      return found;
    },
    keep(objects) {
      const uids = new Set(objects.map(({ uid }) => uid));
      for (const uid of known.keys()) if (!uids.has(uid)) known.delete(uid);
    },
  };
}

function keyPairIn({ value }: ClusterObject): KeyPair {
  const { data = {} } = value as { readonly data?: Readonly<Record<string, string>> };
  const [cert = '', key = ''] = ['tls.crt', 'tls.key'].map((name) =>
    Buffer.from(data[name] ?? '', 'base64').toString('latin1'),
  );
  return { cert, key };
}
