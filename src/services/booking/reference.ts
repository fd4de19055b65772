/** The name of a booking that a guest reads aloud at a desk. */
import { randomBytes } from 'node:crypto';

/** Crockford's base 32: without I, L, O and U, nothing is misread or misheard. */
const letters = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** Eight characters, 40 random bits. */
export function createReference(): string {
  return Array.from(randomBytes(8), (byte) => letters.charAt(byte & 31)).join('');
}

/** In two groups, such as `7Q4M-0ZKD`. */
export function showReference(reference: string): string {
  return `${reference.slice(0, 4)}-${reference.slice(4)}`;
}

/** What somebody heard or wrote down, as it is stored; undefined if it is no reference. */
export function readReference(text: string): string | undefined {
  const plain = text.toUpperCase().replaceAll('-', '').replaceAll('O', '0').replaceAll(/[IL]/g, '1');
  return /^[\dA-HJKMNP-TV-Z]{8}$/.test(plain) ? plain : undefined;
}
