/** Finds the JSON Schemas of the installed package, as files of a configuration name them for editors. */
import { existsSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

/**
 * Returns a function for the URL of a schema, such as `records`, in the files of a folder. The URLs are relative to the
 * package in the `node_modules` of a project around the directory, so that they are right on each machine. For a global
 * installation, they are those of this machine.
 */
export function findSchemas(directory: string): (name: string, folder: string) => string {
  const installed = ancestors(resolve(directory))
    .map((folder) => join(folder, 'node_modules/frontdesk/schema'))
    .find((folder) => existsSync(folder));
  const own = fileURLToPath(new URL('../../../schema', import.meta.url));
  return (name, folder) => {
    const file = `${name}.json`;
    if (installed === undefined) return pathToFileURL(join(own, file)).href;
    const path = relative(folder, join(installed, file)).replaceAll('\\', '/');
    return path.startsWith('.') ? path : `./${path}`;
  };
}

function ancestors(folder: string): readonly string[] {
  const parent = dirname(folder);
  return [folder, ...(parent === folder ? [] : ancestors(parent))];
}
