/** Reads and writes `Authorization: Basic` (RFC 7617). */
import { isUtf8 } from 'node:buffer';

/** As the user typed them. */
export interface BasicCredentials {
  readonly user: string;
  readonly password: string;
}

/** Longer headers are not parsed, to bound their cost (in characters, scheme included). */
const authorizationCharsMax = 4096;

const basic = /^basic +([A-Za-z0-9+/]+={0,2})$/i;

/**
 * Reads `Basic <base64 of user:password in UTF-8>`. The scheme's case does not matter and the first colon splits
 * (RFC 7617 section 2). Returns undefined for a missing header, another scheme, more than 4 KiB, base64 that is not
 * in its one canonical form, bytes that are not UTF-8, and control characters.
 */
export function parseBasic(header: string | undefined): BasicCredentials | undefined {
  if (header === undefined || header.length > authorizationCharsMax) return undefined;
  const encoded = basic.exec(header)?.[1];
  if (encoded === undefined) return undefined;
  const bytes = Buffer.from(encoded, 'base64');
  // Node's decoder accepts nearly everything; encoding again shows whether the text was canonical.
  if (bytes.toString('base64') !== encoded || !isUtf8(bytes)) return undefined;
  return splitUserPass(bytes.toString('utf8'));
}

/**
 * The header for a user and a password; `parseBasic` returns both.
 * @throws {TypeError} for what Basic cannot carry: a user with a colon, control characters in either.
 */
export function formatBasic(user: string, password: string): string {
  if (user.includes(':')) throw new TypeError('a user name with a colon cannot be sent by HTTP Basic (RFC 7617)');
  const userPass = `${user}:${password}`;
  if (hasControlCharacter(userPass)) throw new TypeError('HTTP Basic cannot send control characters (RFC 7617)');
  return `Basic ${Buffer.from(userPass, 'utf8').toString('base64')}`;
}

export function hasControlCharacter(text: string): boolean {
  return /\p{Cc}/u.test(text);
}

function splitUserPass(userPass: string): BasicCredentials | undefined {
  const colon = userPass.indexOf(':');
  if (colon === -1 || hasControlCharacter(userPass)) return undefined;
  return {
    user: userPass.slice(0, colon),
    password: userPass.slice(colon + 1),
  };
}
