/** Formats configuration errors as annotations of lines, as GitHub's workflow commands write them. */
import { relative, resolve } from 'node:path';
import { type ConfigurationError, formatPlace } from './errors.ts';

/**
 * Formats each error as an annotation of a line. `workspace`: the directory that
 * the names of files are relative to.
 */
export function formatAnnotations(
  errors: readonly ConfigurationError[],
  level: 'error' | 'warning',
  workspace: string,
): readonly string[] {
  return errors.map(({ source, record, message, other, remedy }) => {
    const at = relative(workspace, resolve(source.file)) || '.';
    const second = other === undefined ? '' : ` (${formatPlace(other, workspace)})`;
    const properties = { file: at, ...(source.line > 0 && { line: source.line }), ...(record && { title: record }) };
    const pairs = Object.entries(properties).map(([name, value]) => `${name}=${escapedProperty(String(value))}`);
    return `::${level} ${pairs.join(',')}::${escapedData(`${message}${second}\n${remedy}`)}`;
  });
}

/** In the message of a workflow command, which is one line. */
export function escapedData(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

function escapedProperty(text: string): string {
  return escapedData(text).replaceAll(':', '%3A').replaceAll(',', '%2C');
}
