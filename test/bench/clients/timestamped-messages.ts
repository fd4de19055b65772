/** Formats messages of a fixed size that contain the time when they were sent: server-sent events and WebSocket frames. */

/** The digits of the monotonic clock in nanoseconds, which all processes of the machine share. */
const stampBytes = 20;

export function currentStamp(): string {
  return String(process.hrtime.bigint()).padStart(stampBytes, '0');
}

export function microsSince(stamp: string): number {
  return Number(process.hrtime.bigint() - BigInt(stamp)) / 1000;
}

const eventStart = 'data: ';
export const eventBytes = eventStart.length + stampBytes + 2;

export function formatEvent(): string {
  return `${eventStart}${currentStamp()}\n\n`;
}

export function stampOfEvent(event: Buffer): string {
  return event.toString('latin1', eventStart.length, eventStart.length + stampBytes);
}

/** A final binary frame with a short length (RFC 6455 section 5.2). */
const frameStart = [0x82, stampBytes];
const maskBytes = 4;
export const frameBytes = frameStart.length + stampBytes;
export const maskedFrameBytes = frameBytes + maskBytes;

export function formatFrame(stamp: string): Buffer {
  return Buffer.concat([Buffer.from(frameStart), Buffer.from(stamp, 'latin1')]);
}

/** A masked frame, as clients must send; a mask of zeros leaves the payload unchanged. */
export function formatMaskedFrame(stamp: string): Buffer {
  const start = Buffer.from([0x82, 0x80 | stampBytes, 0, 0, 0, 0]);
  return Buffer.concat([start, Buffer.from(stamp, 'latin1')]);
}

export function stampOfFrame(frame: Buffer): string {
  return frame.toString('latin1', frameStart.length);
}

/** Unmasks the frame, because a proxy may have masked it again. */
export function stampOfMaskedFrame(frame: Buffer): string {
  const mask = frame.subarray(frameStart.length, frameStart.length + maskBytes);
  const payload = frame.subarray(frameStart.length + maskBytes);
  return Buffer.from(payload.map((byte, index) => byte ^ (mask[index % maskBytes] ?? 0))).toString('latin1');
}

/** Splits incoming chunks into messages of a fixed size. */
export function createSplitter(bytes: number, onMessage: (message: Buffer) => void): (chunk: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    for (; rest.length >= bytes; rest = rest.subarray(bytes)) onMessage(rest.subarray(0, bytes));
  };
}
