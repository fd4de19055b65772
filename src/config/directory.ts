/** Which files a configuration directory has, and their bytes or why they cannot be read; and how a directory is made. */
import { constants, readFileSync, type Stats, statSync } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { type ConfigurationError, didYouMean, suggestion, systemCode } from './errors.ts';

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
  const { files, errors, notices } = await findFiles(directory);
  return { files: files.flatMap((one) => read(one, errors)), errors, notices };
}

type FoundFile = Omit<ConfigurationFile, 'bytes'>;

interface Found extends Pick<Directory, 'notices'> {
  readonly files: readonly FoundFile[];
  readonly errors: ConfigurationError[];
}

async function findFiles(directory: string): Promise<Found> {
  const errors: ConfigurationError[] = [];
  const entries = await listed(directory, errors);
  const notices = unread(directory, entries);
  if (errors.length === 0) errors.push(...misplaced(directory, entries));
  const folder = async (kind: ConfigurationFile['kind'], name: string) => {
    const path = join(directory, name);
    const names = entries.includes(name) ? await listed(path, errors) : [];
    notices.push(...names.filter(isJson).map((file) => unreadJson(path, file)));
    return names.filter(isYaml).map((file) => ({ kind, file: join(path, file) }));
  };
  const file = (kind: ConfigurationFile['kind'], name: string) =>
    entries.includes(name) ? [{ kind, file: join(directory, name) }] : [];
  const [services, limits] = await Promise.all([folder('services', 'services'), folder('limits', 'ratelimit')]);
  const found = [...services, ...limits, ...file('users', 'users.yaml'), ...file('demo', 'demo.yaml')];
  return { files: found, errors, notices };
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
    const above = entryNames.includes(basename(resolve(directory)))
      ? `Name the directory above: ${dirname(directory)}.`
      : '';
    return [errorAt(directory, 'there is no configuration here', `${partsOf} ${above || firstConfiguration}`)];
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

function unreadJson(folder: string, file: string): ConfigurationError {
  const name = file.replace(/json$/, 'yaml');
  return errorAt(join(folder, file), `"${file}" is not read`, `Rename it to ${name}: JSON is YAML too.`);
}

function isJson(name: string): boolean {
  return /^[^.].*\.json$/.test(name);
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
function read(found: FoundFile, errors: ConfigurationError[]): readonly ConfigurationFile[] {
  try {
    const stats = statSync(found.file);
    const fault = stats.isDirectory() ? undefined : sizeFault(stats);
    if (fault === undefined) return [{ ...found, bytes: readFileSync(found.file) }];
    errors.push(errorAt(found.file, ...fault));
    return [];
  } catch (cause) {
    errors.push(unreadable(found.file, 'file', cause));
    return [];
  }
}

/** More than 10,000 mappings of twenty lines need. */
const fileBytesMax = 32 * 1024 * 1024;

/** Reading a pipe or a device might never end. */
function sizeFault(stats: Stats): readonly [message: string, remedy: string] | undefined {
  if (!stats.isFile()) return ['the file cannot be read: it is no regular file', elsewhere];
  if (stats.size <= fileBytesMax) return undefined;
  const message = `the file has ${stats.size} bytes, and at most ${fileBytesMax} are read`;
  return [message, 'Split it into several files, or move it out of the directory.'];
}

const elsewhere = 'Put a file in its place, or move it out of the directory.';

/** Whether the files that would be read have so many bytes. Looks at no more of them than it must. */
export async function hasBytes(directory: string, bytes: number): Promise<boolean> {
  const { files } = await findFiles(directory);
  let sum = 0;
  return files.some(({ file }) => {
    sum += statSync(file, { throwIfNoEntry: false })?.size ?? 0;
    return sum >= bytes;
  });
}

/** Calls `made` for each that was missing. One level at a time: Node's own `recursive` would try for ever where /proc refuses. */
export async function makeFolders(folder: string, made: (folder: string) => void = () => {}): Promise<void> {
  if (await isThere(folder)) return;
  await makeFolders(dirname(folder), made);
  try {
    await mkdir(folder);
  } catch (cause) {
    if (systemCode(cause) !== 'EEXIST') throw cause;
    return;
  }
  made(folder);
  // Another user may write to the folder above, and put a link in its place meanwhile.
  await using handle = await open(folder, constants.O_DIRECTORY | constants.O_NOFOLLOW);
  await giveToOwnerOf(dirname(folder), handle);
}

/** Makes the owner of a folder the owner of what is new in it: the superuser writes for a frontdesk that runs as another user. */
export async function giveToOwnerOf(folder: string, made: FileHandle): Promise<void> {
  const [{ uid, gid }, own] = await Promise.all([stat(folder), made.stat()]);
  // Other users may not give anything away, nor may the superuser of some containers: then it stays as it is.
  if (uid !== own.uid) await made.chown(uid, gid).catch(() => {});
}

async function isThere(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (cause) {
    if (systemCode(cause) !== 'ENOENT') throw cause;
    return false;
  }
}

function unreadable(path: string, what: 'file' | 'directory', cause: unknown): ConfigurationError {
  const code = systemCode(cause);
  const remedy = remedies[what][code] ?? `Let this user read ${path}.`;
  return errorAt(path, `the ${what} cannot be read: ${reasons[code] ?? code}`, remedy);
}

/** A file that is listed and does not exist is a link to nothing, or was deleted a moment ago. */
const remedies: Readonly<Record<'file' | 'directory', Readonly<Record<string, string>>>> = {
  directory: { ENOENT: firstConfiguration, ENOTDIR: `Name a directory. ${partsOf}` },
  file: { ENOENT: 'Correct the link, or remove it.', ELOOP: 'Correct the link, or remove it.', EISDIR: elsewhere },
};

function errorAt(file: string, message: string, remedy: string): ConfigurationError {
  return { source: { file, line: 1 }, record: undefined, message, remedy };
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'it does not exist',
  EACCES: 'permission denied',
  ENOTDIR: 'it is not a directory',
  EISDIR: 'it is a directory',
  ELOOP: 'it is a link that leads to itself',
};
