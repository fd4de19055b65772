/** A client of HTTP/2 that sends what it likes, frame by frame, and records the frames that it receives. */
import { connect, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { closeOf } from '../waiting.ts';
import { flag, formatSettings, frameHeaderBytes, frameType, preface } from './http2-frames.ts';

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

export interface Attacker {
  readonly socket: Socket;
  /** The bytes are sent together. Resolves when the client may send more, or the connection has closed. */
  readonly send: (...frames: readonly Uint8Array[]) => Promise<void>;
  readonly received: (type: number) => readonly Frame[];
  /** The codes of the frames that end streams or the connection. */
  readonly codes: (type: typeof frameType.reset | typeof frameType.goAway) => readonly number[];
  /** Whether the response on a stream is complete. */
  readonly hasEnded: (stream: number) => boolean;
  readonly closed: Promise<void>;
}

/** What every connection begins with. */
export const start = Buffer.concat([Buffer.from(preface), formatSettings()]);

export function attack(port: number, first: Uint8Array = start): Attacker {
  return attackOver(connect(port, '127.0.0.1'), first);
}

export function attackOver(socket: Socket, first: Uint8Array = start): Attacker {
  const frames: Frame[] = [];
  let rest = Buffer.alloc(0);
  socket
    .on('error', () => socket.destroy())
    .on('data', (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk]);
      for (let frame = firstFrame(rest); frame !== undefined; frame = firstFrame(rest)) {
        frames.push(frame);
        rest = rest.subarray(frameHeaderBytes + frame.payload.length);
      }
    });
  const closed = closeOf(socket);
  socket.write(first);
  const received = (type: number) => frames.filter((frame) => frame.type === type);
  return {
    socket,
    async send(...bytes) {
      if (!socket.writable) return;
      const hasRoom = socket.write(Buffer.concat(bytes));
      if (hasRoom) await setImmediate();
      else await Promise.race([closed, new Promise((resolve) => socket.once('drain', resolve))]);
    },
    received,
    codes: (type) => received(type).map(({ payload }) => payload.readUInt32BE(type === frameType.reset ? 0 : 4)),
    hasEnded: (id) => frames.some(({ flags, stream }) => stream === id && (flags & flag.endStream) !== 0),
    closed,
  };
}

function firstFrame(bytes: Buffer): Frame | undefined {
  if (bytes.length < frameHeaderBytes) return undefined;
  const end = frameHeaderBytes + bytes.readUIntBE(0, 3);
  if (bytes.length < end) return undefined;
  const [type, flags] = [bytes.readUInt8(3), bytes.readUInt8(4)];
  return { type, flags, stream: bytes.readUInt32BE(5), payload: bytes.subarray(frameHeaderBytes, end) };
}
