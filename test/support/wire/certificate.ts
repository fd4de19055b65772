/** Creates self-signed certificates with openssl. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

export interface Certificate {
  readonly cert: string;
  readonly key: string;
  /** The file that contains `cert`. */
  readonly file: string;
}

/**
 * Undefined if openssl is not installed.
 * @param names in openssl's format: `DNS:hotel,IP:127.0.0.1`
 */
export async function makeCertificate(directory: string, names: string): Promise<Certificate | undefined> {
  const [file, keyFile] = [join(directory, 'cert.pem'), join(directory, 'key.pem')];
  const kind = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  const subject = ['-subj', '/CN=test', '-addext', `subjectAltName=${names}`];
  try {
    await promisify(execFile)('openssl', ['req', ...kind, ...subject, '-keyout', keyFile, '-out', file]);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
  return { cert: await readFile(file, 'utf8'), key: await readFile(keyFile, 'utf8'), file };
}

/** Signs the certificate in the directory again, so that it ended yesterday. */
export async function expireCertificate(directory: string): Promise<void> {
  const [file, keyFile] = [join(directory, 'cert.pem'), join(directory, 'key.pem')];
  await promisify(execFile)('openssl', ['x509', '-in', file, '-signkey', keyFile, '-days', '-1', '-out', file]);
}
