/** New files on the disk: all of them or none, and never one in place of another. */
import { lstat, open, readdir, rm, rmdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { giveToOwnerOf, makeFolders, notWritten, systemCode } from '#config';

export interface NewFile {
  /** Within the directory, in it or one folder below. */
  readonly name: string;
  readonly text: string;
  /** Only this user may read it. */
  readonly isSecret: boolean;
}

/** Makes what directories are missing. Rejects with an Error fit for a terminal, and then nothing is left behind. */
export async function writeNewFiles(directory: string, files: readonly NewFile[]): Promise<void> {
  const undo: (() => Promise<void>)[] = [];
  for (const { name, text, isSecret } of files) {
    const file = join(directory, name);
    try {
      await makeFolders(dirname(file), (folder) => undo.push(() => rmdir(folder)));
      // `wx` follows no link, and fails where another has written meanwhile.
      await using created = await open(file, 'wx', isSecret ? 0o600 : 0o666);
      // On a full disk it is there, and what it should hold is not.
      undo.push(() => rm(file));
      await created.writeFile(text);
      await giveToOwnerOf(dirname(file), created);
    } catch (cause) {
      // A folder stays where another program has put something into it.
      for (const step of undo.reverse()) await step().catch(() => {});
      throw notWritten(file, cause, remedy);
    }
  }
}

const remedy = 'name a directory that this user may write to';

/** The names, within the directory, of what is in it and in these folders of it; links included. */
export async function listNames(directory: string, folders: readonly string[]): Promise<readonly string[]> {
  const names: string[] = [];
  for (const folder of ['', ...folders]) {
    const place = join(directory, folder);
    await refuseLink(place);
    names.push(...(await namesIn(place)).map((name) => join(folder, name)));
  }
  return names;
}

/** A link may lead to a directory of another user. With a slash behind its name, `lstat` would follow it. */
async function refuseLink(path: string): Promise<void> {
  const found = await lstat(resolve(path)).catch(() => undefined);
  if (found?.isSymbolicLink()) throw new Error(`${path} is a link: name the directory that it leads to`);
}

async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (cause) {
    if (systemCode(cause) === 'ENOENT') return [];
    throw notWritten(folder, cause, remedy);
  }
}
