/** Errors for a program: they name its options, `port`, where those for the command line name variables, `PORT`. */
import { variables } from '#config';

/** Rejects with the error of `work`, in the names of the options. */
export async function inOptionNames<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof Error ? renamed(error) : error;
  }
}

function renamed(error: Error): Error {
  const message = error.message.replace(word, (name) => optionOf.get(name) ?? name);
  // A new one, since a stack begins with the message that its error was made with.
  return message === error.message ? error : new Error(message, { cause: error.cause });
}

/** The directory is no setting of a program, which may have records in its place. */
const optionOf: ReadonlyMap<string, string> = new Map([...variables(), ['CONFIG_DIR', 'config']]);

/** Names stand between spaces, or before a `=` or a comma; in paths and quotes a word in capitals is the program's own. */
const word = /(?<=^|\s)[A-Z][A-Z_]*(?=[\s=,.:]|$)/gm;
