/** Splits the body of a gRPC response into its frames. */

export interface GrpcFrame {
  /** 1 for a compressed message. In gRPC-Web, 128 for trailers. */
  readonly flags: number;
  readonly message: Buffer;
}

/** Ignores a frame that is not complete. */
export function grpcFramesIn(body: Buffer): readonly GrpcFrame[] {
  if (body.length < headBytes) return [];
  const end = headBytes + body.readUInt32BE(1);
  if (body.length < end) return [];
  const frame = { flags: body.readUInt8(0), message: body.subarray(headBytes, end) };
  return [frame, ...grpcFramesIn(body.subarray(end))];
}

const headBytes = 5;
