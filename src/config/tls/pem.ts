/** Reads PEM files, and says what is wrong with one that cannot be used. */
import { type Stats, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
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

/** Rejects with a PemError whose message starts with `name`, such as `TLS_CERT`, if there is one. */
export async function readPem(file: string, block: PemBlock, name?: string): Promise<string> {
  const subject = name === undefined ? 'the file' : name;
  const fail = (message: string, remedy: string): never => {
    throw new PemError(fileError(file, `${subject} ${message}`, remedy));
  };
  const stats = statsOf(file, (code) => fail(`cannot be read (${code})`, 'Use a PEM file that this user may read.'));
  if (!stats.isFile()) fail('is not a file', 'Use a PEM file.');
  if (stats.size > pemBytesMax) fail(`has more than ${pemBytesMax} bytes`, 'Use a PEM file with fewer certificates.');
  const text = await readFile(file, 'utf8').catch((cause) =>
    fail(`cannot be read (${codeOf(cause) || messageOf(cause)})`, 'Use a PEM file that this user may read.'),
  );
  if (!text.includes('-----BEGIN ')) fail('is not a PEM file: it has no BEGIN line', 'Convert it to PEM.');
  if (!text.includes(`${block}-----`)) fail(`contains no ${block}`, 'Use the file that contains it.');
  return text;
}

function statsOf(file: string, fail: (code: string) => never): Stats {
  try {
    return statSync(file);
  } catch (cause) {
    return fail(codeOf(cause) || messageOf(cause));
  }
}

/** In PEM format. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

/** Returns what OpenSSL says about a certificate chain and a key that cannot be used together. */
export async function keyPairFault(pair: KeyPair): Promise<string | undefined> {
  const { createSecureContext } = await import('node:tls');
  try {
    createSecureContext(pair);
    return undefined;
  } catch (cause) {
    return messageOf(cause);
  }
}
