/** A message of gRPC over HTTP/2: a byte that says whether it is compressed, its length in four bytes, and the message. */

const headerBytes = 5;

/** Source: PROTOCOL-HTTP2.md of grpc/grpc, Length-Prefixed-Message. */
export function formatFrame(message: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(headerBytes + message.length);
  frame.writeUInt8(0, 0);
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, headerBytes);
  return frame;
}

/** The one uncompressed message that `frame` holds; undefined if it is compressed, cut short or not alone. */
export function parseFrame(frame: Buffer): Buffer | undefined {
  if (frame.length < headerBytes || frame.readUInt8(0) !== 0) return undefined;
  if (frame.readUInt32BE(1) !== frame.length - headerBytes) return undefined;
  return frame.subarray(headerBytes);
}
