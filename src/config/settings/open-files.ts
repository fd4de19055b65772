/** How many files and connections the system lets this process open. */
import { readFileSync } from 'node:fs';

/** What a system has that does not say. */
const usualMax = 10_000;

/** Node raises the soft limit to the hard one as it starts, so this is what `ulimit -Hn` says. */
export function openFilesMax(): number {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === undefined ? usualMax : Number(soft);
  } catch {
    // Only Linux has the file.
    return usualMax;
  }
}
