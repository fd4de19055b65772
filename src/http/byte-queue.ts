/** A byte queue that merges tiny chunks: kept separately, each would cost 200 bytes of overhead. */

export interface ByteQueue {
  readonly add: (chunk: Buffer) => void;
  /** The number of bytes in the queue. */
  readonly length: () => number;
  /** Removes all bytes and returns them in order. */
  readonly take: () => Buffer[];
}

/** The first chunks are kept without copying. Most bodies do not have more. */
const uncopiedChunksMax = 16;
/** Later chunks smaller than this are copied into blocks. */
const smallChunkBytes = 1024;
const blockBytes = 4096;

export function createByteQueue(): ByteQueue {
  let chunks: Buffer[] = [];
  let length = 0;
  let block: Buffer | undefined;
  let filled = 0;

  function copy(chunk: Buffer): void {
    if (block === undefined || filled + chunk.length > blockBytes) {
      endBlock();
      block = Buffer.allocUnsafe(blockBytes);
    }
    block.set(chunk, filled);
    filled += chunk.length;
  }

  function endBlock(): void {
    if (block !== undefined) chunks.push(block.subarray(0, filled));
    block = undefined;
    filled = 0;
  }

  return {
    add(chunk) {
      length += chunk.length;
      if (chunks.length >= uncopiedChunksMax && chunk.length < smallChunkBytes) {
        copy(chunk);
        return;
      }
      endBlock();
      chunks.push(chunk);
    },
    length: () => length,
    take() {
      endBlock();
      const taken = chunks;
      chunks = [];
      length = 0;
      return taken;
    },
  };
}
