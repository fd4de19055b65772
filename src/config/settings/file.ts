/** Reads settings.env of a configuration directory: settings that belong to these records, as lines `NAME=value`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { systemCode } from '../errors.ts';

export const settingsFile = 'settings.env';

/** By variable; none where there is no file. Throws an Error fit for a terminal when it cannot be read. */
export function readSettingsFile(directory: string): Readonly<Record<string, string | undefined>> {
  const file = join(directory, settingsFile);
  try {
    return parseEnv(readFileSync(file, 'utf8'));
  } catch (cause) {
    const code = systemCode(cause);
    if (code === 'ENOENT' || code === 'ENOTDIR') return {};
    throw new Error(`${file} cannot be read (${code}): let this user read it, or remove it`, { cause });
  }
}
