/** The names of counters: no two descriptors share one, and none is long. */
import { createHash } from 'node:crypto';

const keyCharactersMax = 128;

/** The text behind its length, so that what follows cannot be taken for a part of it: `a` is `1:a`. */
export function sized(text: string): string {
  return `${text.length}:${text}`;
}

/**
 * The key itself, or a digest of a long one: values come from clients, and a counter must not cost what a header may weigh.
 * A key starts with a digit (a length), a digest with `#`.
 */
export function bounded(key: string): string {
  if (key.length <= keyCharactersMax) return key;
  // UTF-8 would write every lone surrogate as the same replacement character.
  return `#${createHash('sha256').update(key, 'utf16le').digest('base64')}`;
}
