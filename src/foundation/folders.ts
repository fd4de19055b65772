/** Makes folders, and gives what is new the owner of the folder that contains it. */
import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { codeOf } from './errors.ts';

export interface NewFolderOptions {
  /** @default 0o777, without the bits of the process's umask */
  readonly mode?: number;
  readonly onCreated?: (folder: string) => void;
}

/**
 * Makes a folder and its missing parents, one level at a time, because Node's `recursive` option never returns when
 * /proc rejects the call.
 */
export async function makeFolders(folder: string, options: NewFolderOptions = {}): Promise<void> {
  if (await isFolder(folder)) return;
  await makeFolders(dirname(folder), options);
  try {
    await mkdir(folder, options.mode);
  } catch (cause) {
    // Another process may have made it in the meantime.
    if (await isFolder(folder)) return;
    throw cause;
  }
  options.onCreated?.(folder);
  // Does not follow a link: another user with access to the parent could have replaced the new folder with one.
  await using handle = await open(folder, constants.O_DIRECTORY | constants.O_NOFOLLOW);
  await inheritOwner(dirname(folder), handle);
}

/**
 * Makes the owner of a folder the owner of a new file or folder in it, so that root can create files for a frontdesk
 * that runs as another user.
 */
export async function inheritOwner(folder: string, created: FileHandle): Promise<void> {
  const [{ uid, gid }, own] = await Promise.all([stat(folder), created.stat()]);
  // Only root may change the owner, and in some containers not even root may. The owner then stays the same.
  if (uid !== own.uid) await created.chown(uid, gid).catch(() => {});
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (cause) {
    if (codeOf(cause) !== 'ENOENT') throw cause;
    return false;
  }
}
