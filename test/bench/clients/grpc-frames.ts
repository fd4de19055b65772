/** Encodes a call to the rate-limit service: a gRPC message in HTTP/2 frames (RFC 9113). */
import { flag, formatFrame, frameHeaderBytes, frameType } from '../../support/wire/http2-frames.ts';

/** The two frames of a call with one descriptor for each key. */
export function formatCall(stream: number, keys: readonly number[]): Buffer {
  const message = requestMessage(keys);
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([
    formatFrame(frameType.headers, flag.endHeaders, stream, headerBlock),
    formatFrame(frameType.data, flag.endStream, stream, Buffer.concat([prefix, message])),
  ]);
}

/** Copies a call with another stream and key, which is faster than encoding a new one. */
export function callFrom(template: Buffer, stream: number, key: number): Buffer {
  const call = Buffer.from(template);
  call.writeUInt32BE(stream, 5);
  call.writeUInt32BE(stream, frameHeaderBytes + headerBlock.length + 5);
  // The value is at the end of the message.
  call.write(labelValue(key), call.length - valueCharacters, 'latin1');
  return call;
}

const path = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';

/** HPACK (RFC 7541) without the dynamic table: POST and http by index, the rest as literals. */
const headerBlock = Buffer.concat([
  Buffer.from([0x83, 0x86, 0x04]),
  withLength(path),
  Buffer.from([0x01]),
  withLength('localhost'),
  Buffer.from([0x0f, 0x10]),
  withLength('application/grpc'),
  Buffer.from([0x00]),
  withLength('te'),
  withLength('trailers'),
]);

const valueCharacters = 8;

function labelValue(key: number): string {
  return String(key).padStart(valueCharacters, '0');
}

export function requestMessage(keys: readonly number[]): Buffer {
  const descriptors = keys.map((key) => {
    const entry = Buffer.concat([field(1, 'x-gateway-test-allow'), field(2, labelValue(key))]);
    return field(2, field(1, entry));
  });
  return Buffer.concat([field(1, 'gateway'), ...descriptors]);
}

function field(number: number, content: string | Buffer): Buffer {
  return Buffer.concat([Buffer.from([(number << 3) | 2]), withLength(content)]);
}

/** Prefixes a content of less than 127 bytes with its length. */
function withLength(content: string | Buffer): Buffer {
  return Buffer.concat([Buffer.from([content.length]), Buffer.from(content)]);
}
