/** Lists and reads the files of a configuration directory, and creates directories. */
import { lstatSync, readdirSync, readFileSync, type Stats, statSync } from 'node:fs';
import { readdir, readlink } from 'node:fs/promises';
import { platform } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { codeOf, messageOf } from '#foundation';
import { type ConfigurationError, didYouMean, fileError, formatErrors, suggestion } from './errors.ts';
import { encodingErrorOf } from './yaml.ts';

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

/** A directory that never stops changing is used as it is. */
const readingsMax = 5;

/**
 * Reads the files in the order of their names, so that the result is the same on every machine. Repeats this until two
 * readings are equal: a deployment may swap a link meanwhile, and some of the old files with some of the new ones could
 * open a route. `useAnother` says how to choose another directory, for errors.
 */
export async function readDirectory(directory: string, useAnother?: string): Promise<Directory> {
  let last: Directory | undefined;
  for (let readings = 1; ; readings += 1) {
    const { files, errors, notices } = await findFiles(directory, useAnother);
    const next = { files: files.flatMap((one) => read(one, errors)), errors, notices };
    if (readings === readingsMax || isDeepStrictEqual(next, last)) return next;
    last = next;
  }
}

type FoundFile = Omit<ConfigurationFile, 'bytes'>;

interface Found extends Pick<Directory, 'notices'> {
  readonly files: readonly FoundFile[];
  readonly errors: ConfigurationError[];
}

async function findFiles(directory: string, useAnother = 'set CONFIG_DIR to its location'): Promise<Found> {
  const createOne = `Create one with frontdesk init, or ${useAnother}.`;
  const errors: ConfigurationError[] = [];
  const entries = await listNames(directory, errors, createOne);
  const notices = ignoredYaml(directory, entries);
  if (errors.length === 0) errors.push(...layoutErrors(directory, entries, createOne));
  const folder = async (kind: ConfigurationFile['kind'], name: string) => {
    const path = join(directory, name);
    const names = entries.includes(name) ? await listNames(path, errors) : [];
    notices.push(...names.filter((one) => !isYaml(one)).flatMap((one) => ignoredIn(path, one)));
    return names.filter(isYaml).map((file) => ({ kind, file: join(path, file) }));
  };
  const file = (kind: ConfigurationFile['kind'], name: string) =>
    entries.includes(name) ? [{ kind, file: join(directory, name) }] : [];
  const [services, limits] = await Promise.all([folder('services', 'services'), folder('limits', 'ratelimit')]);
  const users = file('users', 'users.yaml');
  notices.push(...users.flatMap((one) => writableNotice(one.file)));
  return { files: [...services, ...limits, ...users, ...file('demo', 'demo.yaml')], errors, notices };
}

/**
 * Reports that other users of this machine can write a file, as sshd does. A group with the number of the owner, which is
 * the owner's own, and that of root are no others. Windows does not report who may write.
 */
function writableNotice(file: string): ConfigurationError[] {
  const stats = platform() === 'win32' ? undefined : statsOf(file);
  if (stats === undefined) return [];
  const isGroup = (stats.mode & 0o020) !== 0 && stats.gid !== stats.uid && stats.gid !== 0;
  const who = (stats.mode & 0o002) !== 0 ? 'every user of this machine' : isGroup ? 'its group' : undefined;
  if (who === undefined) return [];
  return [fileError(file, `${who} can write this file, and so add users`, `Run: chmod go-w ${file}`)];
}

const entryNames = ['services', 'ratelimit', 'users.yaml', 'demo.yaml'];
/** The file with settings in the configuration directory. */
export const settingsFile = 'settings.env';

/** Whether the directory has any part of a configuration. True if it cannot be read, so that a later error says why. */
export function hasConfiguration(directory: string): boolean {
  try {
    return readdirSync(directory).some((name) => [...entryNames, settingsFile].includes(name));
  } catch (cause) {
    return codeOf(cause) !== 'ENOENT';
  }
}

const layout = `A configuration directory contains ${entryNames.join(', ')}.`;

/**
 * Rejects mistyped names, which would otherwise be ignored silently because every part is optional, and directories
 * without any part, which are probably not the intended ones.
 */
function layoutErrors(directory: string, entries: readonly string[], createOne: string): ConfigurationError[] {
  const mistyped = entries.filter(
    (entry) => !entryNames.includes(entry) && !isLeftover(entry) && suggestion(entry, entryNames) !== undefined,
  );
  if (mistyped.length === 0 && !entries.some((entry) => entryNames.includes(entry))) {
    const remedy = entryNames.includes(basename(resolve(directory)))
      ? `Use the parent directory: ${dirname(directory)}.`
      : createOne;
    return [fileError(directory, 'there is no configuration here', `${layout} ${remedy}`)];
  }
  return mistyped.map((entry) =>
    fileError(join(directory, entry), `"${entry}" is not read${didYouMean(entry, entryNames)}`, layout),
  );
}

/** Recognizes hidden files, and the backups of editors and other tools: `users.yaml~`, `#users.yaml#`, `users.yaml.1`. */
function isLeftover(name: string): boolean {
  return /^[.#]|[~#]$|\.\d+$/.test(name);
}

/** Reports other YAML files. The directory may contain other files, but YAML was probably meant to be read. */
function ignoredYaml(directory: string, entries: readonly string[]): ConfigurationError[] {
  const found = entries.filter(
    (entry) => isYaml(entry) && !entryNames.includes(entry) && suggestion(entry, entryNames) === undefined,
  );
  const remedy =
    'Move it to services/ if it contains records, to ratelimit/ if it contains limits, or out of the directory.';
  return found.map((entry) => fileError(join(directory, entry), `"${entry}" is not read`, remedy));
}

/** Reports a folder, JSON, or YAML under another extension in `services` or `ratelimit`. Ignores hidden ones. */
function ignoredIn(folder: string, name: string): ConfigurationError[] {
  if (name.startsWith('.')) return [];
  const path = join(folder, name);
  const renamed = name.replace(/\.(?:json|ya?ml)$/i, '.yaml');
  if (isFolder(path))
    return [
      fileError(path, `"${name}" is not read`, `Move its files to ${basename(folder)}/: subfolders are not read.`),
    ];
  if (renamed === name) return [];
  const reason = /json$/i.test(name) ? ': JSON is valid YAML' : '';
  return [fileError(path, `"${name}" is not read`, `Rename it to ${renamed}${reason}.`)];
}

/** False if it is unknown, for example for a broken link. */
function isFolder(path: string): boolean {
  return statsOf(path)?.isDirectory() === true;
}

/** Undefined if they cannot be read, for example for a broken link. */
function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}

function isYaml(name: string): boolean {
  return /^[^.].*\.ya?ml$/.test(name);
}

async function listNames(
  directory: string,
  errors: ConfigurationError[],
  ifMissing = correctLink,
): Promise<readonly string[]> {
  try {
    return (await readdir(directory)).sort();
  } catch (cause) {
    errors.push(unreadable(directory, 'directory', cause, ifMissing));
    return [];
  }
}

function read(found: FoundFile, errors: ConfigurationError[]): readonly ConfigurationFile[] {
  const bytes = bytesOf(found.file, errors);
  return bytes === undefined ? [] : [{ ...found, bytes }];
}

/**
 * Returns the text of a file, or undefined if there is neither a file nor a link. Throws an Error for the terminal if it
 * cannot be read as UTF-8.
 */
export function readText(file: string): string | undefined {
  if (isMissing(file)) return undefined;
  const errors: ConfigurationError[] = [];
  const bytes = bytesOf(file, errors) ?? Buffer.alloc(0);
  const [error = encodingErrorOf(file, bytes)] = errors;
  if (error !== undefined) throw new Error(formatErrors([error], resolve('.')));
  return bytes.toString('utf8');
}

/** False if a link leads to nothing, or without access to the directory. */
function isMissing(file: string): boolean {
  try {
    return lstatSync(file, { throwIfNoEntry: false }) === undefined;
  } catch (cause) {
    // The "directory" is a file, which is reported when its configuration is read.
    return codeOf(cause) === 'ENOTDIR';
  }
}

/** Reads synchronously, which suits thousands of small files and opens only one at a time. */
function bytesOf(file: string, errors: ConfigurationError[]): Buffer | undefined {
  try {
    const stats = statSync(file);
    const fault = stats.isDirectory() ? undefined : sizeFault(stats);
    if (fault === undefined) return readFileSync(file);
    errors.push(fileError(file, ...fault));
  } catch (cause) {
    errors.push(unreadable(file, 'file', cause));
  }
  return undefined;
}

/** Enough for more than 10,000 mappings of twenty lines each. */
const fileBytesMax = 32 * 1024 * 1024;

/** Rejects files that are too large, and pipes and devices, because reading them might never end. */
function sizeFault(stats: Stats): readonly [message: string, remedy: string] | undefined {
  if (!stats.isFile()) return ['the file cannot be read: it is not a regular file', replaceIt];
  if (stats.size <= fileBytesMax) return undefined;
  const message = `the file has ${stats.size} bytes, and at most ${fileBytesMax} are read`;
  return [message, 'Split it into several files, or move it out of the directory.'];
}

const replaceIt = 'Replace it with a file, or move it out of the directory.';

/** Reports whether the files to read have at least this many bytes in total. */
export async function hasBytes(directory: string, bytes: number): Promise<boolean> {
  const { files } = await findFiles(directory);
  let sum = 0;
  return files.some(({ file }) => {
    // A file that cannot be read is an error only when it is read.
    sum += statsOf(file)?.size ?? 0;
    return sum >= bytes;
  });
}

/** Lists the YAML files of a folder that are links to another folder, where changes emit no event for this one. */
export async function linksElsewhere(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const links = entries.filter((entry) => entry.isSymbolicLink() && isYaml(entry.name));
  const paths = links.map(({ name }) => join(folder, name));
  const targets = await Promise.all(paths.map((path) => readlink(path).catch(() => '')));
  return paths.filter((_, index) => /^(?:\/|\.\.\/)/.test(targets[index] ?? ''));
}

function unreadable(
  path: string,
  what: 'file' | 'directory',
  cause: unknown,
  ifMissing = correctLink,
): ConfigurationError {
  const code = codeOf(cause) || messageOf(cause);
  const remedy = { ...remedies, ENOENT: ifMissing }[code] ?? `Give this user permission to read ${path}.`;
  return fileError(path, `the ${what} cannot be read: ${reasons[code] ?? code}`, remedy);
}

/** For a file or folder that is listed but does not exist: it is a broken link, or was just deleted. */
const correctLink = 'Correct the link, or remove it.';

const remedies: Readonly<Record<string, string>> = {
  ELOOP: correctLink,
  EISDIR: replaceIt,
  ENOTDIR: `Use a directory. ${layout}`,
};

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'it does not exist',
  EACCES: 'permission denied',
  ENOTDIR: 'it is not a directory',
  EISDIR: 'it is a directory',
  ELOOP: 'it is a link to itself',
};
