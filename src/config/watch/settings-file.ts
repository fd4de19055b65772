/** Watches settings.env, which takes effect only at a start. */
import { join } from 'node:path';
import { readText, settingsFile } from '../directory.ts';
import { createFolderWatch } from './folders.ts';

/**
 * Calls `onChange` with the name of the file when its text has changed, or when it cannot be read any more. Resolves when
 * all further changes will be detected. Does not keep the process running.
 */
export async function watchSettingsFile(directory: string, onChange: (file: string) => void): Promise<void> {
  const file = join(directory, settingsFile);
  const places = async () => ({ folders: [], links: [], files: [file] });
  let known = textOf(file);
  const watch = createFolderWatch({
    places,
    onChange() {
      const text = textOf(file);
      if (text === known) return;
      known = text;
      onChange(file);
    },
    onError() {},
  });
  await watch.refresh();
}

function textOf(file: string): string | undefined {
  try {
    return readText(file);
  } catch {
    return undefined;
  }
}
