/** Configuration errors as the text that people read: place, record, what is wrong, and the remedy below. */
import { isAbsolute, relative } from 'node:path';
import { concealMessage, concealText } from './conceal-text.ts';
import type { ConfigurationError, Source } from './configuration.ts';
import { namesSecret } from './secret-names.ts';

/** Two lines for each error, and nothing of the secrets that they quote: they go to logs, too. Absolute file names are shown relative to `workingDirectory`. */
export function formatErrors(errors: readonly ConfigurationError[], workingDirectory: string): string {
  return errors.map((error) => formatError(error, workingDirectory)).join('\n');
}

function formatError({ source, record, message, other, remedy }: ConfigurationError, workingDirectory: string): string {
  const place = (where: Source) => formatPlace(where, workingDirectory);
  const second = other === undefined ? '' : ` (${place(other)})`;
  const subject = record === undefined ? '' : `${concealText(record)}: `;
  return `${place(source)}  ${subject}${concealMessage(message, namesSecret)}${second}\n    ${concealText(remedy)}`;
}

function formatPlace({ file, line }: Source, workingDirectory: string): string {
  return `${isAbsolute(file) ? relative(workingDirectory, file) : file}:${line}`;
}
