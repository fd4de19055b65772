/** The messages of a gRPC body, each after its length (Length-Prefixed-Message in grpc/grpc, doc/PROTOCOL-HTTP2.md). */
import { ByteQueue } from '../body.ts';

export interface GrpcFrame {
  /** 1 for a compressed message. In gRPC-Web, 128 for trailers. */
  readonly flags: number;
  readonly message: Buffer;
}

const headBytes = 5;

export function formatGrpcFrame(message: Uint8Array, flags = 0): Buffer {
  const frame = Buffer.allocUnsafe(headBytes + message.length);
  frame.writeUInt8(flags, 0);
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, headBytes);
  return frame;
}

/** Parses a body of a single uncompressed message. Undefined if it is compressed, truncated, or followed by another. */
export function parseGrpcFrame(body: Buffer): Buffer | undefined {
  return isGrpcFrame(body) && body.readUInt8(0) === 0 ? body.subarray(headBytes) : undefined;
}

/** True for a body of a single message, compressed or not. */
export function isGrpcFrame(body: Buffer): boolean {
  return body.length >= headBytes && body.readUInt32BE(1) === body.length - headBytes;
}

export interface GrpcFrameReader {
  /** Returns the frames that the chunk completes. Undefined once one has announced a message beyond the bound. */
  readonly read: (chunk: Buffer) => readonly GrpcFrame[] | undefined;
  /** False within a frame: a body that ends there is truncated. */
  readonly isBetweenFrames: () => boolean;
}

/** Creates a reader that keeps at most one incomplete message, of up to `messageBytesMax` bytes. */
export function createGrpcFrameReader(messageBytesMax: number): GrpcFrameReader {
  const queue = new ByteQueue();
  // The bytes that the next step needs: first those of a head, then those of the whole frame.
  let neededBytes = headBytes;
  let isRefused = false;

  function read(chunk: Buffer): readonly GrpcFrame[] | undefined {
    if (isRefused) return undefined;
    queue.add(chunk);
    const frames: GrpcFrame[] = [];
    while (queue.length() >= neededBytes) {
      const bytes = Buffer.concat(queue.take());
      const rest = takeFrames(bytes, frames);
      isRefused = rest === undefined;
      if (rest === undefined) return undefined;
      if (rest.length > 0) queue.add(rest);
    }
    return frames;
  }

  /** Returns the bytes after the last complete frame, and sets `neededBytes`. */
  function takeFrames(bytes: Buffer, frames: GrpcFrame[]): Buffer | undefined {
    let at = 0;
    for (;;) {
      neededBytes = headBytes;
      if (bytes.length - at < headBytes) return bytes.subarray(at);
      const length = bytes.readUInt32BE(at + 1);
      neededBytes = headBytes + length;
      if (length > messageBytesMax) return undefined;
      if (bytes.length - at < neededBytes) return bytes.subarray(at);
      frames.push({ flags: bytes.readUInt8(at), message: bytes.subarray(at + headBytes, at + neededBytes) });
      at += neededBytes;
    }
  }

  return Object.freeze({ read, isBetweenFrames: () => !isRefused && queue.length() === 0 });
}
