/** Bytes that wait, in few buffers: a client that sends them one by one would make us keep an object of 200 bytes for each. */

export interface ByteQueue {
  readonly add: (chunk: Buffer) => void;
  /** In bytes. */
  readonly length: () => number;
  /** All of them, in their order; then it is empty. */
  readonly take: () => Buffer[];
}

/** So many are kept as they came: most bodies have fewer, and need no copy. */
const uncopiedMax = 16;
/** Later ones are copied when they are smaller. */
const smallBytes = 1024;
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
      if (chunks.length >= uncopiedMax && chunk.length < smallBytes) {
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
