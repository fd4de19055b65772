/** Which files a configuration directory has, and their bytes or why they cannot be read. */
import { readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type ConfigurationError, didYouMean, suggestion } from './errors.ts';

export interface ConfigurationFile {
  readonly kind: 'services' | 'limits' | 'users' | 'demo';
  readonly file: string;
  readonly bytes: Buffer;
}

export interface Directory {
  readonly files: readonly ConfigurationFile[];
  readonly errors: readonly ConfigurationError[];
  readonly notices: readonly ConfigurationError[];
}

/** The files in the order of their names, so that every machine reads the same. */
export async function readDirectory(directory: string): Promise<Directory> {
  const errors: ConfigurationError[] = [];
  const entries = await listed(directory, errors);
  if (errors.length === 0) errors.push(...misplaced(directory, entries));
  const folder = async (kind: ConfigurationFile['kind'], name: string) => {
    const path = join(directory, name);
    const names = entries.includes(name) ? await listed(path, errors) : [];
    return names.filter(isYaml).map((file) => ({ kind, file: join(path, file) }));
  };
  const file = (kind: ConfigurationFile['kind'], name: string) =>
    entries.includes(name) ? [{ kind, file: join(directory, name) }] : [];
  const [services, limits] = await Promise.all([folder('services', 'services'), folder('limits', 'ratelimit')]);
  const found = [...services, ...limits, ...file('users', 'users.yaml'), ...file('demo', 'demo.yaml')];
  return { files: found.flatMap((one) => read(one, errors)), errors, notices: unread(directory, entries) };
}

const entryNames = ['services', 'ratelimit', 'users.yaml', 'demo.yaml'];
const partsOf = `A configuration directory has ${entryNames.join(', ')}.`;
const firstConfiguration = 'Write a first one with frontdesk init, or set CONFIG_DIR to where it is.';

/** Each part is optional, so a mistyped name would be ignored silently; a directory with no part at all is the wrong one. */
function misplaced(directory: string, entries: readonly string[]): ConfigurationError[] {
  const mistyped = entries.filter(
    (entry) => !entryNames.includes(entry) && suggestion(entry, entryNames) !== undefined,
  );
  if (mistyped.length === 0 && !entries.some((entry) => entryNames.includes(entry))) {
    return [errorAt(directory, 'there is no configuration here', `${partsOf} ${firstConfiguration}`)];
  }
  return mistyped.map((entry) =>
    errorAt(join(directory, entry), `"${entry}" is not read${didYouMean(entry, entryNames)}`, partsOf),
  );
}

/** Much else may be beside the parts, but YAML there is probably meant to be read. */
function unread(directory: string, entries: readonly string[]): ConfigurationError[] {
  const found = entries.filter(
    (entry) => isYaml(entry) && !entryNames.includes(entry) && suggestion(entry, entryNames) === undefined,
  );
  const remedy = 'Move it to services/ for records or to ratelimit/ for limits, or elsewhere.';
  return found.map((entry) => errorAt(join(directory, entry), `"${entry}" is not read`, remedy));
}

function isYaml(name: string): boolean {
  return /^[^.].*\.ya?ml$/.test(name);
}

async function listed(directory: string, errors: ConfigurationError[]): Promise<readonly string[]> {
  try {
    return (await readdir(directory)).sort();
  } catch (cause) {
    errors.push(unreadable(directory, 'directory', cause));
    return [];
  }
}

/** Synchronous: for thousands of small files it is several times as fast, and only one file is open at a time. */
function read(found: Omit<ConfigurationFile, 'bytes'>, errors: ConfigurationError[]): readonly ConfigurationFile[] {
  try {
    return [{ ...found, bytes: readFileSync(found.file) }];
  } catch (cause) {
    errors.push(unreadable(found.file, 'file', cause));
    return [];
  }
}

function unreadable(path: string, what: 'file' | 'directory', cause: unknown): ConfigurationError {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause);
  const isNew = code === 'ENOENT' && what === 'directory';
  const remedy = isNew ? firstConfiguration : `Let this user read ${path}.`;
  return errorAt(path, `the ${what} cannot be read: ${reasons[code] ?? code}`, remedy);
}

function errorAt(file: string, message: string, remedy: string): ConfigurationError {
  return { source: { file, line: 1 }, record: undefined, message, remedy };
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'it does not exist',
  EACCES: 'permission denied',
  ENOTDIR: 'it is not a directory',
  EISDIR: 'it is a directory',
};
