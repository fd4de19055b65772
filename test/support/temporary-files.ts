/** Directories with files in them that are gone after the tests. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** Texts by path within a new directory, whose name is the answer. */
export type WriteFiles = (files?: Readonly<Record<string, string>>) => Promise<string>;

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
