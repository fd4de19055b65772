/** The certificate and the key for HTTPS, from the files that the settings name. */
import { readFile } from 'node:fs/promises';
import type { Settings } from './settings.ts';

export interface Tls {
  readonly cert: string;
  readonly key: string;
}

/** The certificate and key for HTTPS. Undefined without TLS_CERT and TLS_KEY. Rejects with a message that names the setting and the file, or both settings. */
export async function loadTls({ tlsCert, tlsKey }: Pick<Settings, 'tlsCert' | 'tlsKey'>): Promise<Tls | undefined> {
  if (tlsCert === undefined || tlsKey === undefined) return undefined;
  // One after the other, so that of two errors it is always the first that is reported.
  const cert = await readPem('TLS_CERT', tlsCert, 'CERTIFICATE');
  const key = await readPem('TLS_KEY', tlsKey, 'PRIVATE KEY');
  await requireKeyPair({ cert, key });
  return { cert, key };
}

async function readPem(setting: string, file: string, block: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    throw new Error(`cannot read ${setting}=${file} (${cause.code}): name a PEM file that this user may read`, {
      cause,
    });
  });
  if (!text.includes('-----BEGIN ')) throw new Error(`${setting}=${file} is not a PEM file: it has no BEGIN line`);
  if (!text.includes(`${block}-----`))
    throw new Error(`${setting}=${file} has no ${block}: name the file that has one`);
  return text;
}

/** OpenSSL's own message names neither the settings nor the remedy. */
async function requireKeyPair(tls: Tls): Promise<void> {
  const { createSecureContext } = await import('node:tls');
  try {
    createSecureContext(tls);
  } catch (cause) {
    const remedy = 'name a certificate chain and the private key that belongs to it, both PEM and without a passphrase';
    const reason = cause instanceof Error ? cause.message : cause;
    throw new Error(`TLS_CERT and TLS_KEY cannot be used (${reason}): ${remedy}`, { cause });
  }
}
