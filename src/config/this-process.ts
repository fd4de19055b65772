/** Properties of the running process: the version of its package and its limit of open files. */
import { readFileSync } from 'node:fs';

/** Returns the version of this package. */
export function packageVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  return version;
}

/** Assumed when the system does not report a limit. */
const usualMax = 10_000;

/**
 * Returns how many files and connections this process may open. This is what `ulimit -Hn` prints, because Node raises
 * the soft limit to the hard limit when it starts.
 */
export function openFilesMax(): number {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === undefined ? usualMax : Number(soft);
  } catch {
    // The file exists only on Linux.
    return usualMax;
  }
}
