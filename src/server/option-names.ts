/** Errors and log lines for a program: they name its options, `port`, where those for the command line name variables, `PORT`. */
import { variables } from '#config';
import type { CountingLogger } from '#http';

/** Rejects with the error of `work`, in the names of the options. */
export async function inOptionNames<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof Error ? renamed(error) : error;
  }
}

function renamed(error: Error): Error {
  const message = withOptionNames(error.message);
  // A new one, since a stack begins with the message that its error was made with.
  return message === error.message ? error : new Error(message, { cause: error.cause });
}

/** The same logger, for warnings and errors in the names of the options. Takes one of `createSafeLogger`, which needs no `this`. */
export function loggerWithOptionNames(logger: CountingLogger): CountingLogger {
  return Object.freeze({
    ...logger,
    warn: (fields: object, message = '') => logger.warn(fields, withOptionNames(message)),
    error: (fields: object, message = '') => logger.error(fields, withOptionNames(message)),
  });
}

function withOptionNames(text: string): string {
  return text.replace(word, (name) => optionOf.get(name) ?? name);
}

/** The directory is no setting of a program, which may have records in its place. */
const optionOf: ReadonlyMap<string, string> = new Map([...variables(), ['CONFIG_DIR', 'config']]);

/** Names stand between spaces, or before a `=` or a comma; in paths and quotes a word in capitals is the program's own. */
const word = /(?<=^|\s)[A-Z][A-Z_]*(?=[\s=,.:]|$)/gm;
