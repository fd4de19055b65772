/** Parses and formats `Authorization: Basic` (RFC 7617). */
import { isUtf8 } from 'node:buffer';

/** Credentials as the user typed them. */
export interface BasicCredentials {
  readonly user: string;
  readonly password: string;
}

/** Bounds the cost of parsing: the maximum length of the header in characters, including the scheme. */
const authorizationCharsMax = 4096;

/** Leaves about 1,000 bytes for the name. */
export const passwordBytesMax = 2048;

const basic = /^basic +([A-Za-z0-9+/]+={0,2})$/i;

/**
 * Parses `Basic <base64 of user:password in UTF-8>`. The scheme is case-insensitive, and the first colon separates user
 * and password (RFC 7617 section 2). Returns undefined for a missing header, another scheme, more than 4 KiB,
 * non-canonical base64, invalid UTF-8, and control characters.
 */
export function parseBasic(header: string | undefined): BasicCredentials | undefined {
  if (header === undefined || header.length > authorizationCharsMax) return undefined;
  const encoded = basic.exec(header)?.[1];
  if (encoded === undefined) return undefined;
  const bytes = Buffer.from(encoded, 'base64');
  // Node's decoder accepts almost anything. Encoding the bytes again shows whether the text was canonical.
  if (bytes.toString('base64') !== encoded || !isUtf8(bytes)) return undefined;
  const userPass = bytes.toString('utf8');
  const colon = userPass.indexOf(':');
  if (colon === -1 || hasControlCharacter(userPass)) return undefined;
  return { user: userPass.slice(0, colon), password: userPass.slice(colon + 1) };
}

/**
 * Formats the header for a user and a password, as the inverse of `parseBasic`.
 * @throws {TypeError} if Basic cannot transmit them: for a user name with a colon, or control characters in either.
 */
export function formatBasic(user: string, password: string): string {
  if (user.includes(':')) throw new TypeError('HTTP Basic cannot transmit a user name with a colon (RFC 7617)');
  const userPass = `${user}:${password}`;
  if (hasControlCharacter(userPass)) throw new TypeError('HTTP Basic cannot transmit control characters (RFC 7617)');
  return `Basic ${Buffer.from(userPass, 'utf8').toString('base64')}`;
}

export function hasControlCharacter(text: string): boolean {
  return /\p{Cc}/u.test(text);
}
