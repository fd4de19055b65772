/** Reads PEM files, and says what is wrong with one that cannot be used. */
import { X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { codeOf, messageOf } from '#foundation';
import { type ConfigurationError, fileError } from '../errors.ts';

/** What a PEM file must contain. */
export type PemBlock = 'CERTIFICATE' | 'PRIVATE KEY';

/** Enough for a bundle of all public authorities. */
const pemBytesMax = 1024 * 1024;

/** A PEM file that cannot be used. */
export class PemError extends Error {
  readonly found: ConfigurationError;

  constructor(found: ConfigurationError) {
    super(`${found.source.file}: ${found.message}: ${found.remedy}`);
    this.found = found;
  }
}

/** Throws a PemError, whose message starts with `subject`: a setting or a field. Reads synchronously, one file at a time. */
export function readPem(file: string, block: PemBlock, subject = 'the file'): string {
  const fail = (message: string, remedy: string): never => {
    throw new PemError(fileError(file, `${subject} ${message}`, remedy));
  };
  const text = textOf(file, fail);
  if (!text.includes('-----BEGIN ')) fail('is not a PEM file: it has no BEGIN line', 'Convert it to PEM.');
  if (!text.includes(`${block}-----`)) fail(`contains no ${block}`, 'Use the file that contains it.');
  return text;
}

function textOf(file: string, fail: (message: string, remedy: string) => never): string {
  try {
    const stats = statSync(file);
    if (!stats.isFile()) fail('is not a file', 'Use a PEM file.');
    if (stats.size > pemBytesMax) fail(`has more than ${pemBytesMax} bytes`, 'Use a PEM file with fewer certificates.');
    return readFileSync(file, 'utf8');
  } catch (cause) {
    if (cause instanceof PemError) throw cause;
    return fail(`cannot be read (${codeOf(cause) || messageOf(cause)})`, 'Use a PEM file that this user may read.');
  }
}

/** In PEM format. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

/** Returns what OpenSSL says about a certificate chain and a key that cannot be used together. */
export function keyPairFault(pair: KeyPair): string | undefined {
  // Loaded on demand, because most processes do not need it.
  const { createSecureContext } = createRequire(import.meta.url)('node:tls') as typeof import('node:tls');
  try {
    createSecureContext(pair);
    // Its hosts and dates are read as well.
    new X509Certificate(pair.cert);
    return undefined;
  } catch (cause) {
    return messageOf(cause);
  }
}

/**
 * Returns what is wrong with a certificate chain and its key, which do not come from files, or undefined. It takes half a
 * millisecond.
 */
export function certificateFault(cert: string, key: string): string | undefined {
  if (cert.length + key.length > pemBytesMax) return `there are more than ${pemBytesMax} bytes`;
  if (!cert.includes('CERTIFICATE-----')) return 'there is no certificate in PEM format';
  if (!key.includes('PRIVATE KEY-----')) return 'there is no private key in PEM format';
  if (/BEGIN ENCRYPTED|,ENCRYPTED/.test(key)) return 'the private key is encrypted';
  const fault = keyPairFault({ cert, key });
  if (fault === undefined) return undefined;
  if (fault.endsWith('key values mismatch')) return 'the private key does not match the certificate';
  // OpenSSL puts a number and a part of its library in front.
  return `it cannot be used (${fault.replace(/^.*::/, '')})`;
}
