/** Header values as text: values are bytes (RFC 9110 section 5.5), and Node shows each byte as one character. */
import { isUtf8 } from 'node:buffer';
import { bytesFromText, isAscii } from '#foundation';

/** Returns the bytes of the text in UTF-8, as Node shows them. */
export function encodeHeader(text: string): string {
  return bytesFromText(text);
}

/** Decodes a value that is valid UTF-8. Any other value keeps one character for each byte, as in Latin-1. */
export function decodeHeader(value: string): string {
  // Code in this process may have set text.
  if (isAscii(value) || /[\u0100-\uffff]/.test(value)) return value;
  const bytes = Buffer.from(value, 'latin1');
  return isUtf8(bytes) ? bytes.toString() : value;
}

/** Turns `x-travel-user` into `X-Travel-User`, because Node sends header names as they are written. */
export function canonicalCase(name: string): string {
  return name.toLowerCase().replace(/(?<![^-])[a-z]/g, (letter) => letter.toUpperCase());
}

/** Returns the first cookie with this name in a `Cookie` header (RFC 6265 section 4.2.1). */
export function cookieOf(header: string | undefined, name: string): string | undefined {
  const start = `${name}=`;
  const found = header?.split(';').find((pair) => pair.trimStart().startsWith(start));
  return found?.trim().slice(start.length);
}
