/** Headers as they came over the wire: names and values in turn, as bytes. */

/** The first value under a lower-case name. */
export function firstValue(rawHeaders: readonly Buffer[], name: string): string | undefined {
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const found = rawHeaders[index];
    if (found?.length === name.length && textOf(found).toLowerCase() === name) return textOf(rawHeaders[index + 1]);
  }
  return undefined;
}

/** Byte for byte, since headers have no encoding of their own (RFC 9110 section 5.5). */
export function textOf(bytes: Buffer | undefined): string {
  return bytes === undefined ? '' : bytes.toString('latin1');
}
