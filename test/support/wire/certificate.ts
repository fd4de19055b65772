/** Creates certificates with openssl. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ServerTls } from '../../../src/http/server/tls-contexts.ts';

/** Can be the TLS of a server, which then has this certificate alone. */
export interface Certificate extends ServerTls {
  readonly cert: string;
  readonly key: string;
  /** The file that contains `cert`. */
  readonly file: string;
  readonly keyFile: string;
}

export interface CertificateOptions {
  /** In openssl's format. @default '/CN=test' */
  readonly subject?: string;
  /** From now on. @default 90 */
  readonly days?: number;
  readonly keyType?: 'ec' | 'rsa';
  /** Whose key signs it. @default its own */
  readonly issuer?: Pick<Certificate, 'file' | 'keyFile'>;
  /** The file names. @default ['cert.pem', 'key.pem'] */
  readonly files?: readonly [cert: string, key: string];
}

const keyOptions = {
  ec: ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'],
  rsa: ['-newkey', 'rsa:2048'],
};

/**
 * Undefined if openssl is not installed.
 * @param names in openssl's format: `DNS:hotel,IP:127.0.0.1`, or '' for none
 */
export async function makeCertificate(
  directory: string,
  names: string,
  options: CertificateOptions = {},
): Promise<Certificate | undefined> {
  const { subject = '/CN=test', days = 90, keyType = 'ec', issuer, files = ['cert.pem', 'key.pem'] } = options;
  const [file, keyFile] = [join(directory, files[0]), join(directory, files[1])];
  const kind = ['-x509', ...keyOptions[keyType], '-nodes', '-days', String(days), '-subj', subject];
  const extensions = names === '' ? [] : ['-addext', `subjectAltName=${names}`];
  const signer = issuer === undefined ? [] : ['-CA', issuer.file, '-CAkey', issuer.keyFile];
  try {
    await promisify(execFile)('openssl', ['req', ...kind, ...extensions, ...signer, '-keyout', keyFile, '-out', file]);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
  const [cert, key] = [await readFile(file, 'utf8'), await readFile(keyFile, 'utf8')];
  return { cert, key, file, keyFile, certificates: [], fallback: { cert, key, hosts: [] } };
}

/** Signs the certificate in the directory again, so that it ended yesterday. */
export async function expireCertificate(directory: string): Promise<void> {
  const [file, keyFile] = [join(directory, 'cert.pem'), join(directory, 'key.pem')];
  await promisify(execFile)('openssl', ['x509', '-in', file, '-signkey', keyFile, '-days', '-1', '-out', file]);
}
