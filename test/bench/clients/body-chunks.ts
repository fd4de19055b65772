/** Generates bodies of any size from one block of memory. */

export const mebibyte = 1024 * 1024;

const chunk = Buffer.alloc(64 * 1024, 'x');

export function* chunksOf(bytes: number): Generator<Buffer> {
  for (let left = bytes; left > 0; left -= chunk.length) yield chunk.subarray(0, left);
}
