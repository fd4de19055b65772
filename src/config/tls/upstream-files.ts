/** Reads the PEM files that records name for the TLS of their services. */
import { resolve } from 'node:path';
import type { ConfigurationError, Fault } from '../errors.ts';
import { quote } from '../quote.ts';
import { recordError } from '../records/conflicts.ts';
import type { GatewayRecord } from '../records/record.ts';
import { type KeyPair, keyPairFault, type PemBlock, PemError, readPem } from './pem.ts';
import type { UpstreamTls } from './upstream-tls.ts';

/** A PEM file that a record names. */
export interface UpstreamFile {
  /** As in the record, because the directory may have another path on each replica. */
  readonly name: string;
  /** `''` if it cannot be read. */
  readonly text: string;
}

export interface UpstreamFiles {
  /** All that records name, each once. One that has not changed since `last` is the same object. */
  readonly found: readonly UpstreamFile[];
  readonly errors: readonly ConfigurationError[];
}

/** Names are relative to `directory`. Reads each file once, because many records may name the same ones. */
export function readUpstreamFiles(
  records: readonly GatewayRecord[],
  directory: string,
  last: readonly UpstreamFile[],
): UpstreamFiles {
  const known = new Map(last.map((one) => [one.name, one]));
  const found = new Map<string, UpstreamFile>();
  const errors: ConfigurationError[] = [];
  const reads = new Map<string, Read>();
  const pairFaults = new Map<string, string | undefined>();

  function readOnce(field: string, name: string, block: PemBlock): Read {
    const key = `${field} ${name}`;
    const read = reads.get(key) ?? tryToRead(resolve(directory, name), block, `tls: ${field} ${quote(name)}`);
    reads.set(key, read);
    return read;
  }

  function textOf(record: GatewayRecord, field: string, name: string | undefined, block: PemBlock): string {
    if (name === undefined) return '';
    const { text, fault } = readOnce(field, name, block);
    if (fault !== undefined) errors.push(recordError(record, fault));
    const before = known.get(name);
    found.set(name, before?.text === text ? before : { name, text });
    return text;
  }

  function pairFaultOf({ clientCert, clientKey }: UpstreamTls, pair: KeyPair): string | undefined {
    const names = JSON.stringify([clientCert, clientKey]);
    if (!pairFaults.has(names)) pairFaults.set(names, keyPairFault(pair));
    return pairFaults.get(names);
  }

  for (const record of records) {
    const tls = tlsOf(record);
    if (tls === undefined) continue;
    textOf(record, 'ca', tls.ca, 'CERTIFICATE');
    const cert = textOf(record, 'client_cert', tls.clientCert, 'CERTIFICATE');
    const key = textOf(record, 'client_key', tls.clientKey, 'PRIVATE KEY');
    const fault = cert === '' || key === '' ? undefined : pairFaultOf(tls, { cert, key });
    if (fault === undefined) continue;
    const remedy = 'Use a certificate chain and its matching private key, without a passphrase.';
    errors.push(recordError(record, { message: `tls: client_cert and client_key cannot be used (${fault})`, remedy }));
  }
  return { found: [...found.values()], errors };
}

interface Read {
  /** `''` if the file cannot be read. */
  readonly text: string;
  readonly fault?: Fault;
}

function tryToRead(file: string, block: PemBlock, subject: string): Read {
  try {
    return { text: readPem(file, block, subject) };
  } catch (error) {
    if (!(error instanceof PemError)) throw error;
    const { message, remedy } = error.found;
    return { text: '', fault: { message, remedy } };
  }
}

function tlsOf(record: GatewayRecord): UpstreamTls | undefined {
  return record.kind === 'Mapping' || record.kind === 'AuthService' ? record.tls : undefined;
}
