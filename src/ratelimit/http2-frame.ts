/** HTTP/2 frames (RFC 9113 section 4) as bytes. */

export const frameType = Object.freeze({
  data: 0,
  headers: 1,
  reset: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
});

export const flag = Object.freeze({ ack: 0x1, endStream: 0x1, endHeaders: 0x4, padded: 0x8, priority: 0x20 });

export const errorCode = Object.freeze({
  none: 0,
  protocol: 1,
  flowControl: 3,
  frameSize: 6,
  cancel: 8,
  compression: 9,
  enhanceYourCalm: 11,
});

export const setting = Object.freeze({
  headerTableSize: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxHeaderListSize: 6,
});

export const frameHeaderBytes = 9;

/** The length that every peer takes, and the most that we do. */
export const frameBytesMax = 16_384;

export const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';

/** An error of the whole connection; `code` is what the peer is told. */
export class ConnectionError extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.name = 'ConnectionError';
    this.code = code;
  }
}

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  /** Only until the next frame: what is kept must be copied. */
  readonly payload: Buffer;
}

export function formatFrame(type: number, flags: number, stream: number, payload: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(frameHeaderBytes + payload.length);
  writeFrameHeader(frame, 0, payload.length, type, flags, stream);
  frame.set(payload, frameHeaderBytes);
  return frame;
}

export function writeFrameHeader(
  to: Buffer,
  at: number,
  length: number,
  type: number,
  flags: number,
  stream: number,
): void {
  to.writeUIntBE(length, at, 3);
  to[at + 3] = type;
  to[at + 4] = flags;
  to.writeUInt32BE(stream, at + 5);
}

/** A frame of one number: WINDOW_UPDATE and RST_STREAM. */
export function formatNumberFrame(type: number, stream: number, value: number): Buffer {
  const payload = Buffer.allocUnsafe(4);
  payload.writeUInt32BE(value);
  return formatFrame(type, 0, stream, payload);
}

export function formatSettings(values: readonly (readonly [id: number, value: number])[]): Buffer {
  const payload = Buffer.allocUnsafe(6 * values.length);
  values.forEach(([id, value], index) => {
    payload.writeUInt16BE(id, 6 * index);
    payload.writeUInt32BE(value, 6 * index + 2);
  });
  return formatFrame(frameType.settings, 0, 0, payload);
}

/** Gives each frame of a stream of bytes to `onFrame`; throws what it throws, and a `ConnectionError` for one that is too long. */
export function createFrameReader(onFrame: (frame: Frame) => void): (bytes: Buffer) => void {
  let pending: Buffer | undefined;
  return (arrived) => {
    const bytes = pending === undefined ? arrived : Buffer.concat([pending, arrived]);
    let at = 0;
    for (let frame = frameAt(bytes, at); frame !== undefined; frame = frameAt(bytes, at)) {
      at += frameHeaderBytes + frame.payload.length;
      onFrame(frame);
    }
    // The bytes that arrived are written over by those that come next.
    pending = at === bytes.length ? undefined : Buffer.from(bytes.subarray(at));
  };
}

/** Undefined as long as a part of it is missing. */
function frameAt(bytes: Buffer, at: number): Frame | undefined {
  if (bytes.length - at < frameHeaderBytes) return undefined;
  const length = bytes.readUIntBE(at, 3);
  if (length > frameBytesMax) throw new ConnectionError(errorCode.frameSize, 'it sent a frame that is too long');
  const start = at + frameHeaderBytes;
  if (bytes.length - start < length) return undefined;
  return {
    type: bytes.readUInt8(at + 3),
    flags: bytes.readUInt8(at + 4),
    stream: bytes.readUInt32BE(at + 5) & 0x7fff_ffff,
    payload: bytes.subarray(start, start + length),
  };
}

/** Without its padding, and without the priority that a HEADERS frame may begin with. */
export function contentOf({ type, flags, payload }: Frame): Buffer {
  const padding = (flags & flag.padded) === 0 ? -1 : (payload[0] ?? 0);
  const priorityBytes = type === frameType.headers && (flags & flag.priority) !== 0 ? 5 : 0;
  const start = priorityBytes + (padding === -1 ? 0 : 1);
  const end = payload.length - Math.max(0, padding);
  if (start > end) throw new ConnectionError(errorCode.protocol, 'it sent a frame that is shorter than its padding');
  return payload.subarray(start, end);
}
