/** Generates load on a rate-limit service from a separate process: 64 concurrent calls with prepared frames. */
import { connect, type Socket } from 'node:net';
import { flag, formatFrame, frameHeaderBytes, frameType, preface } from '../../support/wire/http2-frames.ts';
import type { LoadOrder } from '../measurements/samples.ts';
import { callFrom, formatCall } from './grpc-frames.ts';

export interface GrpcLoadOrder extends LoadOrder {
  /** The number of counters. Calls use them in turn. */
  readonly keys: number;
  /** Only creates the counters by calling once for each key, and sends their number of calls when all exist. */
  readonly isFilling: boolean;
}

const connections = 4;
const callsPerConnection = 16;
/** The most descriptors that the service accepts in one request. */
const keysPerCallMax = 64;

function run({ port, keys, isFilling, warmUpMs, durationMs }: GrpcLoadOrder): void {
  let responses = 0;
  let key = 0;
  const template = formatCall(1, [0]);
  const nextCall = (stream: number) => callFrom(template, stream, key++ % keys);
  const nextBatch = (stream: number) => {
    if (key >= keys) return undefined;
    const batch = Array.from({ length: Math.min(keysPerCallMax, keys - key) }, (_, index) => key + index);
    key += batch.length;
    return formatCall(stream, batch);
  };
  const sockets = Array.from({ length: connections }, () =>
    openConnection(port, isFilling ? nextBatch : nextCall, () => {
      responses += 1;
      if (isFilling && responses === Math.ceil(keys / keysPerCallMax)) end();
    }),
  );
  const end = () => {
    process.send?.({ requests: responses });
    for (const socket of sockets) socket.destroy();
  };
  if (isFilling) return;
  setTimeout(() => {
    responses = 0;
    process.send?.('began');
    setTimeout(end, durationMs);
  }, warmUpMs);
}

type NextCall = (stream: number) => Buffer | undefined;

/** Sends the next call, if there is one, as soon as a response arrives. */
function openConnection(port: number, nextCall: NextCall, onResponse: () => void): Socket {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  let stream = -1;
  const call = (): Buffer[] => {
    stream += 2;
    const frames = nextCall(stream);
    return frames === undefined ? [] : [frames];
  };
  socket.write(preface);
  socket.write(formatFrame(frameType.settings, 0, 0, Buffer.alloc(0)));
  for (let index = 0; index < callsPerConnection; index += 1) for (const frames of call()) socket.write(frames);
  readFrames(socket, (type, flags, payload) => {
    if (type !== frameType.headers || (flags & flag.endStream) === 0) return replyTo(type, flags, payload);
    onResponse();
    return call();
  });
  socket.on('error', (error) => {
    throw error;
  });
  return socket;
}

type Reply = (type: number, flags: number, payload: Buffer) => Buffer[];

/** Replies to all frames of a chunk with one write. */
function readFrames(socket: Socket, reply: Reply): void {
  let pending: Buffer = Buffer.alloc(0);
  socket.on('data', (chunk) => {
    const bytes = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
    const replies: Buffer[] = [];
    let start = 0;
    while (bytes.length - start >= frameHeaderBytes) {
      const end = start + frameHeaderBytes + bytes.readUIntBE(start, 3);
      if (bytes.length < end) break;
      const payload = bytes.subarray(start + frameHeaderBytes, end);
      replies.push(...reply(bytes.readUInt8(start + 3), bytes.readUInt8(start + 4), payload));
      start = end;
    }
    pending = bytes.subarray(start);
    if (replies.length > 0) socket.write(Buffer.concat(replies));
  });
}

/** Returns the frames to send in reply. Throws unless the response starts with `overall_code: OK`. */
function replyTo(type: number, flags: number, payload: Buffer): Buffer[] {
  const isAcknowledgement = (flags & flag.ack) !== 0;
  if (type === frameType.data) {
    if (payload.length === 0) return [];
    if (payload.readUInt16BE(5) !== 0x0801) throw new Error(`unexpected response: ${payload.toString('hex')}`);
    return [windowUpdate(payload.length)];
  }
  if (type === frameType.settings && !isAcknowledgement) {
    return [formatFrame(frameType.settings, flag.ack, 0, Buffer.alloc(0))];
  }
  if (type === frameType.ping && !isAcknowledgement) return [formatFrame(frameType.ping, flag.ack, 0, payload)];
  if (type === frameType.reset || type === frameType.goAway)
    throw new Error(`the service closed the stream (frame ${type})`);
  return [];
}

/** A WINDOW_UPDATE that returns the bytes read to the connection's window. */
function windowUpdate(bytes: number): Buffer {
  const increment = Buffer.alloc(4);
  increment.writeUInt32BE(bytes);
  return formatFrame(frameType.windowUpdate, 0, 0, increment);
}

process.on('message', (order) => {
  if (typeof order === 'object') run(order as GrpcLoadOrder);
});
