/** What a process reads once from the disk beside its records: settings.env, the files for HTTPS, its version, its bound on open files. */
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { systemCode } from '../errors.ts';
import type { Settings } from './settings.ts';

export const settingsFile = 'settings.env';

/** Settings that belong to the records, as lines `NAME=value`; none where there is no file. Throws an Error fit for a terminal when it cannot be read. */
export function readSettingsFile(directory: string): Readonly<Record<string, string | undefined>> {
  const file = join(directory, settingsFile);
  const text = textOf(file);
  const fault = lineOfFault(text);
  if (fault !== 0) throw new Error(`${file}:${fault} is no setting: write NAME=value, such as PORT=9000`);
  return parseEnv(text);
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    const code = systemCode(cause);
    if (code === 'ENOENT' || code === 'ENOTDIR') return '';
    throw new Error(`${file} cannot be read (${code}): let this user read it, or remove it`, { cause });
  }
}

/** Node ignores a line that it cannot read. 0: there is none. A quoted value may have several lines. */
function lineOfFault(text: string): number {
  const unquoted = text.replace(/=\s*(["'`]).*?\1/gs, (value) => `=${value.replace(/[^\n]/g, '')}`);
  return unquoted.split('\n').findIndex((line) => !/^\s*(?:#|$|(?:export\s+)?[\w.-]+\s*=)/.test(line)) + 1;
}

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

/** The version of this package. */
export function packageVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'));
  return version;
}

/** What a system has that does not say. */
const usualMax = 10_000;

/** How many files and connections the system lets this process open. Node raises the soft limit to the hard one as it starts, so this is what `ulimit -Hn` says. */
export function openFilesMax(): number {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === undefined ? usualMax : Number(soft);
  } catch {
    // Only Linux has the file.
    return usualMax;
  }
}
