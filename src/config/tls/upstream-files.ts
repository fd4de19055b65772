/** Reads the PEM files that records name for the TLS of their services. */
import { resolve } from 'node:path';
import type { ConfigurationError } from '../errors.ts';
import { quote } from '../quote.ts';
import { recordError } from '../records/conflicts.ts';
import type { GatewayRecord } from '../records/record.ts';
import { keyPairFault, type PemBlock, PemError, readPem } from './pem.ts';
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

/** Names are relative to `directory`. */
export function readUpstreamFiles(
  records: readonly GatewayRecord[],
  directory: string,
  last: readonly UpstreamFile[],
): UpstreamFiles {
  const known = new Map(last.map((one) => [one.name, one]));
  const found = new Map<string, UpstreamFile>();
  const errors: ConfigurationError[] = [];

  function textOf(record: GatewayRecord, field: string, name: string | undefined, block: PemBlock): string {
    if (name === undefined) return '';
    const text = readOr(record, () => readPem(resolve(directory, name), block, `tls: ${field} ${quote(name)}`));
    const before = known.get(name);
    found.set(name, before?.text === text ? before : { name, text });
    return text;
  }

  function readOr(record: GatewayRecord, read: () => string): string {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof PemError)) throw error;
      const { message, remedy } = error.found;
      errors.push(recordError(record, { message, remedy }));
      return '';
    }
  }

  for (const record of records) {
    const tls = tlsOf(record);
    if (tls === undefined) continue;
    textOf(record, 'ca', tls.ca, 'CERTIFICATE');
    const cert = textOf(record, 'client_cert', tls.clientCert, 'CERTIFICATE');
    const key = textOf(record, 'client_key', tls.clientKey, 'PRIVATE KEY');
    const fault = cert === '' || key === '' ? undefined : keyPairFault({ cert, key });
    if (fault === undefined) continue;
    const remedy = 'Use a certificate chain and its matching private key, without a passphrase.';
    errors.push(recordError(record, { message: `tls: client_cert and client_key cannot be used (${fault})`, remedy }));
  }
  return { found: [...found.values()], errors };
}

function tlsOf(record: GatewayRecord): UpstreamTls | undefined {
  return record.kind === 'Mapping' || record.kind === 'AuthService' ? record.tls : undefined;
}
