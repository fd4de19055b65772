/** The configuration directory on disk: which files it has, and their text or why it cannot be read. */
import { readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { ConfigurationError } from './configuration.ts';
import { didYouMean, suggestion } from './suggest.ts';

export interface TextFile {
  readonly file: string;
  readonly text: string;
}

/** `users` and `demo` hold one file or none. */
interface ConfigurationFiles {
  readonly services: readonly TextFile[];
  readonly limits: readonly TextFile[];
  readonly users: readonly TextFile[];
  readonly demo: readonly TextFile[];
  readonly errors: readonly ConfigurationError[];
}

/** Files are read in the order of their names, so that every machine sees the same. */
export async function readConfigurationFiles(directory: string): Promise<ConfigurationFiles> {
  const errors: ConfigurationError[] = [];
  const entries = await listed(directory, errors);
  if (errors.length === 0) errors.push(...misplaced(directory, entries));
  const folder = async (name: string) => {
    const path = join(directory, name);
    const names = entries.includes(name) ? await listed(path, errors) : [];
    const files = names.filter((file) => /^[^.].*\.ya?ml$/.test(file)).map((file) => join(path, file));
    return textsOf(files, errors);
  };
  const file = (name: string) => textsOf(entries.includes(name) ? [join(directory, name)] : [], errors);
  const [services, limits] = await Promise.all([folder('services'), folder('ratelimit')]);
  return { services, limits, users: file('users.yaml'), demo: file('demo.yaml'), errors };
}

const entryNames = ['services', 'ratelimit', 'users.yaml', 'demo.yaml'];

/** Each part may be missing, so a slip in a name would lose it without a word; and with no part at all it is the wrong directory. */
function misplaced(directory: string, entries: readonly string[]): ConfigurationError[] {
  const remedy = `A configuration directory has ${entryNames.join(', ')}.`;
  const mistyped = entries.filter(
    (entry) => !entryNames.includes(entry) && suggestion(entry, entryNames) !== undefined,
  );
  if (mistyped.length === 0 && !entries.some((entry) => entryNames.includes(entry))) {
    return [
      { source: { file: directory, line: 1 }, record: undefined, message: 'there is no configuration here', remedy },
    ];
  }
  return mistyped.map((entry) => ({
    source: { file: join(directory, entry), line: 1 },
    record: undefined,
    message: `"${entry}" is not read${didYouMean(entry, entryNames)}`,
    remedy,
  }));
}

async function listed(directory: string, errors: ConfigurationError[]): Promise<readonly string[]> {
  try {
    return (await readdir(directory)).sort();
  } catch (cause) {
    errors.push(unreadable(directory, 'directory', cause));
    return [];
  }
}

function textsOf(files: readonly string[], errors: ConfigurationError[]): readonly TextFile[] {
  return files.flatMap((file) => textOf(file, errors) ?? []);
}

/**
 * At once, not in the background: of thousands of small files each takes some microseconds, and a promise for each several
 * times as long, all of it on this thread as well. Nor are more files open than one, however many there are.
 */
function textOf(file: string, errors: ConfigurationError[]): TextFile | undefined {
  try {
    return { file, text: readFileSync(file, 'utf8') };
  } catch (cause) {
    errors.push(unreadable(file, 'file', cause));
    return undefined;
  }
}

function unreadable(path: string, what: 'file' | 'directory', cause: unknown): ConfigurationError {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause);
  const reason = reasons[code] ?? `it answers ${code}`;
  return {
    source: { file: path, line: 1 },
    record: undefined,
    message: `the ${what} cannot be read: ${reason}`,
    remedy:
      code === 'ENOENT' ? 'Create it, or set CONFIG_DIR to where the configuration is.' : `Let this user read ${path}.`,
  };
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'it does not exist',
  EACCES: 'permission denied',
  ENOTDIR: 'it is not a directory',
  EISDIR: 'it is a directory',
};
