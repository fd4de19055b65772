/** What a process reads about itself: the version of its package, and how many files it may open. */
import { readFileSync } from 'node:fs';

/** The version of this package. */
export function packageVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  return version;
}

/** Assumed of a system that does not say. */
const usualMax = 10_000;

/** How many files and connections the system lets this process open. Node raises the soft limit to the hard one as it starts, so this is what `ulimit -Hn` says. */
export function openFilesMax(): number {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === undefined ? usualMax : Number(soft);
  } catch {
    // Only Linux has the file.
    return usualMax;
  }
}
