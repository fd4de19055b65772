/** The messages of a gRPC body, each after its length (Length-Prefixed-Message in grpc/grpc, doc/PROTOCOL-HTTP2.md). */

const headBytes = 5;

/** `flags`: 1 for a compressed message. In gRPC-Web, 128 for trailers. */
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
