/** Text with one character for each byte, as Node shows request targets and header values. */

/** Decodes bytes that are UTF-8. Replaces those that are not with U+FFFD. */
export function textFromBytes(bytes: string): string {
  return isAscii(bytes) ? bytes : Buffer.from(bytes, 'latin1').toString();
}

/** Encodes text in UTF-8. */
export function bytesFromText(text: string): string {
  return isAscii(text) ? text : Buffer.from(text).toString('latin1');
}

export function isAscii(text: string): boolean {
  return !/[\u0080-\uffff]/.test(text);
}

/** Decodes `%2F`, and `%u002F` of IIS, to the byte. */
export function decodeByte(encoded: string): string {
  return String.fromCharCode(Number.parseInt(encoded.slice(-2), 16));
}

/** Returns the bytes of a character in hexadecimal: of one up to U+00FF itself, and otherwise of its UTF-8. */
export function hexOfCharacter(character: string): string {
  return Buffer.from(character, character <= '\xff' ? 'latin1' : 'utf8').toString('hex');
}
