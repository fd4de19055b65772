/** Directories with files in them that are gone after the tests. */
import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** Texts by path within a new directory, whose name is the answer. */
export type WriteFiles = (files?: Readonly<Record<string, string>>) => Promise<string>;

/** In one step, as in use: a watcher may read a file that is being written while it is still empty. */
export async function replaceFile(file: string, text: string): Promise<void> {
  const next = join(tmpdir(), `frontdesk-${randomUUID()}`);
  await writeFile(next, text);
  await rename(next, file);
}

/** To be called in a `describe`. */
export function temporaryFiles(): WriteFiles {
  const directories: string[] = [];

  after(async () => {
    for (const directory of directories) await rm(directory, { recursive: true, force: true });
  });

  return async function writeFiles(files = {}) {
    const directory = await mkdtemp(join(tmpdir(), 'frontdesk-'));
    directories.push(directory);
    for (const [name, text] of Object.entries(files)) {
      const file = join(directory, name);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, text);
    }
    return directory;
  };
}
