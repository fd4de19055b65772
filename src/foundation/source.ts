/** Where a piece of configuration is written. */

/** Line numbers start at 1; 0 means the whole file or directory. */
export interface Source {
  readonly file: string;
  readonly line: number;
}

/** Formats a location as `file:line`, or only the file or directory if it is meant as a whole. */
export function formatSource({ file, line }: Source): string {
  return line === 0 ? file : `${file}:${line}`;
}
