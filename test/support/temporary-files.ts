/** Writes files into temporary directories, which are removed after the tests. */
import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** Writes texts by path into a new directory and returns the directory's path. */
export type WriteFiles = (files?: Readonly<Record<string, string>>) => Promise<string>;

/** Replaces a file in one step, because a watcher might read a file that is still empty while it is written. */
export async function replaceFile(file: string, text: string): Promise<void> {
  const next = join(tmpdir(), `frontdesk-${randomUUID()}`);
  await writeFile(next, text);
  await rename(next, file);
}

/** The text of a file of records. JSON is YAML, and keeps each document on one line. */
export function yamlOf(...records: readonly object[]): string {
  return records.map((record) => JSON.stringify(record)).join('\n---\n');
}

/** Call it in a `describe`. */
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
