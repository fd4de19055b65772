/** Loads the certificate and key for HTTPS from the files in the settings. */
import { readFile } from 'node:fs/promises';
import type { Settings } from './settings.ts';

export interface Tls {
  readonly cert: string;
  readonly key: string;
}

/**
 * Returns the certificate and key for HTTPS, or undefined without TLS_CERT and TLS_KEY. Rejects with an error that
 * names the setting and the file, or both settings if they do not match.
 */
export async function loadTls({ tlsCert, tlsKey }: Pick<Settings, 'tlsCert' | 'tlsKey'>): Promise<Tls | undefined> {
  if (tlsCert === undefined || tlsKey === undefined) return undefined;
  // Reads one file after the other, so that it always reports the same error if both are invalid.
  const cert = await readPem('TLS_CERT', tlsCert, 'CERTIFICATE');
  const key = await readPem('TLS_KEY', tlsKey, 'PRIVATE KEY');
  await requireKeyPair({ cert, key });
  return { cert, key };
}

async function readPem(setting: string, file: string, block: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    throw new Error(`cannot read ${setting}=${file} (${cause.code}): use a PEM file that this user may read`, {
      cause,
    });
  });
  if (!text.includes('-----BEGIN ')) throw new Error(`${setting}=${file} is not a PEM file: it has no BEGIN line`);
  if (!text.includes(`${block}-----`))
    throw new Error(`${setting}=${file} contains no ${block}: use the file that contains it`);
  return text;
}

/** Reports an invalid pair with settings and remedy, which OpenSSL's own message lacks. */
async function requireKeyPair(tls: Tls): Promise<void> {
  const { createSecureContext } = await import('node:tls');
  try {
    createSecureContext(tls);
  } catch (cause) {
    const remedy = 'use a certificate chain and its matching private key, both in PEM format and without a passphrase';
    const reason = cause instanceof Error ? cause.message : cause;
    throw new Error(`TLS_CERT and TLS_KEY cannot be used (${reason}): ${remedy}`, { cause });
  }
}
