/** Creates several files, all or none, and never overwrites an existing one. */
import { lstat, open, readdir, rm, rmdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { inheritOwner, makeFolders, systemCode, writeError } from '#config';

export interface NewFile {
  /** Relative to the directory, and at most one folder deep. */
  readonly name: string;
  readonly text: string;
  /** Makes the file readable for its owner only. */
  readonly isSecret: boolean;
}

/** Creates missing directories as well. Undoes everything before it rejects with a user-facing Error. */
export async function writeNewFiles(directory: string, files: readonly NewFile[]): Promise<void> {
  const undo: (() => Promise<void>)[] = [];
  for (const { name, text, isSecret } of files) {
    const file = join(directory, name);
    try {
      await makeFolders(dirname(file), (folder) => undo.push(() => rmdir(folder)));
      // `wx` does not follow links, and fails if another process has created the file in the meantime.
      await using created = await open(file, 'wx', isSecret ? 0o600 : 0o666);
      // Registered before writing, because on a full disk the file exists but its content cannot be written.
      undo.push(() => rm(file));
      await created.writeFile(text);
      await inheritOwner(dirname(file), created);
    } catch (cause) {
      // Removing a folder fails, as it should, if another program has put something into it.
      for (const step of undo.reverse()) await step().catch(() => {});
      throw writeError(file, cause, remedy);
    }
  }
}

const remedy = 'choose a directory that you can write to';

/** Lists the contents of the directory and these folders in it, links included. Names are relative to the directory. */
export async function listNames(directory: string, folders: readonly string[]): Promise<readonly string[]> {
  const names: string[] = [];
  for (const folder of ['', ...folders]) {
    const place = join(directory, folder);
    await refuseLink(place);
    names.push(...(await namesIn(place)).map((name) => join(folder, name)));
  }
  return names;
}

/** A link may point to another user's directory. `resolve` drops a final slash, with which `lstat` would follow it. */
async function refuseLink(path: string): Promise<void> {
  const found = await lstat(resolve(path)).catch(() => undefined);
  if (found?.isSymbolicLink()) throw new Error(`${path} is a symbolic link: use the directory it points to`);
}

async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (cause) {
    if (systemCode(cause) === 'ENOENT') return [];
    throw writeError(folder, cause, remedy);
  }
}
