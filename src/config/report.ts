/** Configuration errors as the text that people read: place, record, what is wrong, and the remedy below. */
import { isAbsolute, relative } from 'node:path';
import type { ConfigurationError, Source } from './configuration.ts';

/** Two lines for each error. Absolute file names are shown relative to `workingDirectory`. */
export function formatErrors(errors: readonly ConfigurationError[], workingDirectory: string): string {
  return errors.map((error) => formatError(error, workingDirectory)).join('\n');
}

function formatError({ source, record, message, other, remedy }: ConfigurationError, workingDirectory: string): string {
  const place = (where: Source) => formatPlace(where, workingDirectory);
  const second = other === undefined ? '' : ` (${place(other)})`;
  return `${place(source)}  ${record === undefined ? '' : `${record}: `}${message}${second}\n    ${remedy}`;
}

function formatPlace({ file, line }: Source, workingDirectory: string): string {
  return `${isAbsolute(file) ? relative(workingDirectory, file) : file}:${line}`;
}
