/** settings.env, the file of settings beside the records. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { systemCode } from '../errors.ts';

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
    // With its byte order mark the first name would be another one.
    return readFileSync(file, 'utf8').replace(/^\uFEFF/, '');
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
