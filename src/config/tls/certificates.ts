/** The certificates of the gateway's listener, and how those in TLS_DIR and the one of TLS_CERT and TLS_KEY are read. */
import { X509Certificate } from 'node:crypto';
import { resolve } from 'node:path';
import { messageOf } from '#foundation';
import { type ConfigurationError, fileError, formatErrors } from '../errors.ts';
import type { Settings } from '../settings/settings.ts';
import { mapInTurns } from '../turns.ts';
import type { Places } from '../watch/folders.ts';
import { findPairs, linksIn, type PairOfFiles } from './find-pairs.ts';
import { type KeyPair, keyPairFault, PemError, readPem } from './pem.ts';

/** A certificate with its key, as plain data. */
export interface ServerCertificate extends KeyPair {
  /** `TLS_CERT`, its file below TLS_DIR (`shop.crt`, `shop/tls.crt`), or its Secret (`Secret shop/shop-tls`). */
  readonly name: string;
  /** The file or, again, the Secret. */
  readonly file: string;
  /** The host names that it is for, in lower case: `shop.example`, `*.shop.example`. */
  readonly hosts: readonly string[];
  /** Milliseconds since the epoch. */
  readonly validFromMs: number;
  readonly validToMs: number;
}

/** What the listener needs for TLS, as plain data. */
export interface Tls {
  /** Those in TLS_DIR, by name, or those of listeners of Gateways that have a hostname. */
  readonly certificates: readonly ServerCertificate[];
  /** The one of TLS_CERT, or of a listener without a hostname. May be one of `certificates` too. */
  readonly fallback: ServerCertificate | undefined;
  /** The authorities of clients' certificates. Undefined if clients need none. */
  readonly clientCa: string | undefined;
}

/** All certificates, the fallback last. */
export function allCertificates({ certificates, fallback }: Tls): readonly ServerCertificate[] {
  return fallback === undefined || certificates.includes(fallback) ? certificates : [...certificates, fallback];
}

export interface TlsReading {
  readonly tls: Tls;
  /** What is wrong with the files. What could be used last remains in `tls`. */
  readonly errors: readonly ConfigurationError[];
}

export type TlsSettings = Partial<Pick<Settings, 'tlsCert' | 'tlsKey' | 'tlsDir' | 'tlsPort' | 'tlsClientCa'>>;

/** Returns what files have for HTTPS, or undefined for a gateway without it. Rejects with all errors in the files. */
export async function loadTls(settings: TlsSettings): Promise<Tls | undefined> {
  if (!usesTls(settings)) return undefined;
  const { tls, errors } = await readTls(settings, undefined);
  if (errors.length > 0) throw new Error(`certificates cannot be used:\n${formatErrors(errors, resolve('.'))}`);
  return tls;
}

/** Whether the gateway serves HTTPS. */
export function usesTls({ tlsCert, tlsDir, tlsPort }: TlsSettings): boolean {
  return [tlsCert, tlsDir, tlsPort].some((setting) => setting !== undefined);
}

/** Reads all files. What has not changed since `last` consists of the same objects. */
export async function readTls(settings: TlsSettings, last: Tls | undefined): Promise<TlsReading> {
  const errors: ConfigurationError[] = [];
  const attempt = createAttempt(errors);
  const { tlsCert, tlsKey, tlsDir, tlsClientCa } = settings;
  const fallback =
    tlsCert === undefined || tlsKey === undefined
      ? undefined
      : attempt(last?.fallback, () => readFallback(tlsCert, tlsKey, last?.fallback));
  const certificates = tlsDir === undefined ? [] : await readAll(tlsDir, last?.certificates ?? [], errors);
  const clientCa =
    tlsClientCa === undefined
      ? undefined
      : attempt(last?.clientCa, () => readPem(tlsClientCa, 'CERTIFICATE', 'TLS_CLIENT_CA'));
  return { tls: { certificates, fallback, clientCa }, errors };
}

/** Returns a function that returns what `read` does or, after adding its error, what could be used last. */
function createAttempt(errors: ConfigurationError[]) {
  return <T>(last: T | undefined, read: () => T): T | undefined => {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof PemError)) throw error;
      errors.push(error.found);
      return last;
    }
  };
}

function readFallback(tlsCert: string, tlsKey: string, last: ServerCertificate | undefined) {
  const pair = { name: 'TLS_CERT', certFile: tlsCert, keyFile: tlsKey };
  return readCertificate(pair, ['TLS_CERT', 'TLS_KEY'], last);
}

async function readAll(
  directory: string,
  last: readonly ServerCertificate[],
  errors: ConfigurationError[],
): Promise<readonly ServerCertificate[]> {
  const found = await findPairs(directory);
  errors.push(...found.errors);
  const known = new Map(last.map((one) => [one.name, one]));
  const attempt = createAttempt(errors);
  const complete = await mapInTurns(found.pairs, (pair) =>
    attempt(known.get(pair.name), () => readCertificate(pair, [], known.get(pair.name))),
  );
  const incomplete = found.incomplete.map((name) => known.get(name));
  const certificates = [...complete, ...incomplete].filter((one) => one !== undefined);
  if (certificates.length > 0 || last.length === 0) return certificates;
  if (found.errors.length === 0)
    errors.push(fileError(directory, 'the directory has no certificates any more', 'Write them again.'));
  return last;
}

function readCertificate(
  { name, certFile, keyFile }: PairOfFiles,
  [certName, keyName]: readonly string[],
  last: ServerCertificate | undefined,
): ServerCertificate {
  const cert = readPem(certFile, 'CERTIFICATE', certName);
  const key = readPem(keyFile, 'PRIVATE KEY', keyName);
  if (last !== undefined && last.cert === cert && last.key === key) return last;
  const fault = keyPairFault({ cert, key });
  if (fault !== undefined) {
    const subject = certName === undefined ? `the file and ${keyFile}` : `${certName} and ${keyName}`;
    const remedy = 'Use a certificate chain and its matching private key, both in PEM format and without a passphrase.';
    throw new PemError(fileError(certFile, `${subject} cannot be used (${fault})`, remedy));
  }
  const { hosts, hasNames, ...facts } = factsOf(cert, certFile);
  if (!hasNames && certName === undefined) {
    const message = 'the certificate has no subjectAltName, so it is valid for no host';
    throw new PemError(fileError(certFile, message, 'Request one that lists its host names: clients ignore the CN.'));
  }
  return { name, file: certFile, cert, key, hosts, ...facts };
}

export function factsOf(cert: string, file: string) {
  try {
    const certificate = new X509Certificate(cert);
    return {
      hosts: hostsOf(certificate.subjectAltName),
      hasNames: certificate.subjectAltName !== undefined,
      validFromMs: certificate.validFromDate.getTime(),
      validToMs: certificate.validToDate.getTime(),
    };
  } catch (cause) {
    throw new PemError(fileError(file, `the certificate cannot be read (${messageOf(cause)})`, 'Request another one.'));
  }
}

/** A host name of ASCII letters, with a wildcard for at most its first label (RFC 6125 section 6.4.3). */
const hostPattern = /^(?:\*\.)?[a-z\d_-]+(?:\.[a-z\d_-]+)*$/;

/** Node quotes a name with a comma, which no host has. */
function hostsOf(subjectAltName = ''): readonly string[] {
  const names = subjectAltName.split(', ').filter((name) => name.startsWith('DNS:'));
  const hosts = names.map((name) => name.slice('DNS:'.length).toLowerCase().replace(/\.$/, ''));
  return [...new Set(hosts)].filter((host) => hostPattern.test(host));
}

/** Where the files are, to watch them. */
export async function tlsPlaces({ tlsCert, tlsKey, tlsDir, tlsClientCa }: TlsSettings): Promise<Places> {
  const files = [tlsCert, tlsKey, tlsClientCa].filter((file) => file !== undefined);
  if (tlsDir === undefined) return { folders: [], links: [], files };
  const found = await findPairs(tlsDir);
  const links = await linksIn(found);
  // A link may also be above the directory, as `current` of a deployment is.
  return { folders: found.folders, links: [tlsDir, ...links.folders], files: [...files, ...links.files] };
}
