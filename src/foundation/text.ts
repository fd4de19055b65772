/** Shortens and quotes text for messages. */

/** Cuts text after a number of characters and marks the cut. Never splits a surrogate pair, half of which is no text. */
export function truncate(text: string, charactersMax: number): string {
  if (text.length <= charactersMax) return text;
  const characters = [...text.slice(0, 2 * charactersMax + 2)];
  return characters.length <= charactersMax ? text : `${characters.slice(0, charactersMax).join('')}…`;
}

/** Quotes text from outside as a JSON string on one line, truncated if it is long, for use in a message. */
export function quoteShort(text: string, { charactersMax = 40 } = {}): string {
  return JSON.stringify(truncate(text, charactersMax)).replace(invisible, escaped);
}

/** Characters that look like a space or like nothing, such as those in text copied from a web page. */
const invisible = /(?! )[\p{Z}\p{Cf}]/gu;

/**
 * Escapes the characters that a terminal would act on or not show, as JSON does, so that text from outside can neither
 * move the cursor nor begin a line.
 */
export function escapeForTerminal(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, escaped);
}

function escaped(character: string): string {
  const units = character.split('').map((unit) => unit.charCodeAt(0).toString(16).padStart(4, '0'));
  return units.map((unit) => `\\u${unit}`).join('');
}

export function hasControlCharacter(text: string): boolean {
  return /\p{Cc}/u.test(text);
}

/** Quotes a text for a POSIX shell. */
export function shellWord(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
