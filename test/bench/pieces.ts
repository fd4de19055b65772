/** Streams bodies of any size from one block of memory. */

export const megabyte = 1024 * 1024;

const piece = Buffer.alloc(64 * 1024, 'x');

export function* piecesOf(bytes: number): Generator<Buffer> {
  for (let left = bytes; left > 0; left -= piece.length) yield piece.subarray(0, left);
}
