/** Reading Protocol Buffers: a place in the bytes of a message that moves on with everything that is read. */

/** Nothing is read from `end` on; it moves in and out with the messages inside of messages. */
export interface Cursor {
  readonly bytes: Buffer;
  at: number;
  end: number;
}

export function cursorOver(bytes: Buffer): Cursor {
  return { bytes, at: 0, end: bytes.length };
}

/**
 * How a value is written (Protocol Buffers, Encoding, Message Structure); a tag is the number of the field times 8 and one
 * of these. A known field with another type is an unknown one.
 */
export const wireType = Object.freeze({ varint: 0, fixed64: 1, bytes: 2, groupStart: 3, groupEnd: 4, fixed32: 5 });

export function tagOf(field: number, type: number): number {
  return field * 8 + type;
}

/** Everything here throws for bytes that are cut short, and for a number of more than 10 bytes. */
export function readTag(cursor: Cursor): number {
  const tag = readUint32(cursor);
  if (tag < 8) throw new RangeError('a field has the number 0');
  return tag;
}

/** The lower 32 bits of longer ones, as the protocol has it. */
export function readUint32(cursor: Cursor): number {
  const first = readByte(cursor);
  if (first < 0x80) return first;
  return readLow(cursor, first) >>> 0;
}

/** An int64 or a uint64, exact as far as numbers are: up to 2 ** 53. */
export function readInt64(cursor: Cursor): number {
  const { low, high } = readHalves(cursor);
  return (high | 0) * 4_294_967_296 + (low >>> 0);
}

export function readUint64(cursor: Cursor): number {
  const { low, high } = readHalves(cursor);
  return (high >>> 0) * 4_294_967_296 + (low >>> 0);
}

export function readText(cursor: Cursor): string {
  const start = readLength(cursor);
  return cursor.bytes.toString('utf8', start, cursor.at);
}

/** Bytes are taken for Latin-1, as HTTP takes them. */
export function readLatin1(cursor: Cursor): string {
  const start = readLength(cursor);
  return cursor.bytes.toString('latin1', start, cursor.at);
}

export function readMessage<T>(cursor: Cursor, read: (cursor: Cursor) => T): T {
  const start = readLength(cursor);
  const { at, end } = cursor;
  cursor.at = start;
  cursor.end = at;
  const message = read(cursor);
  cursor.end = end;
  return message;
}

/** A UInt32Value or a UInt64Value: a message of one number, which tells 0 from nothing. */
export function readWrapped(cursor: Cursor): number {
  let value = 0;
  while (cursor.at < cursor.end) {
    const tag = readTag(cursor);
    if (tag === wrappedTag) value = readUint64(cursor);
    else skipField(cursor, tag);
  }
  return value;
}

const wrappedTag = tagOf(1, wireType.varint);

/** The value of a field that is not known. Groups are no longer written, but still to be skipped. */
export function skipField(cursor: Cursor, tag: number, depth = 0): void {
  const type = tag & 7;
  if (type === wireType.varint) readHalves(cursor);
  else if (type === wireType.bytes) readLength(cursor);
  else if (type === wireType.fixed64) skipBytes(cursor, 8);
  else if (type === wireType.fixed32) skipBytes(cursor, 4);
  else if (type === wireType.groupStart && depth < groupDepthMax) skipGroup(cursor, tag, depth + 1);
  else throw new RangeError(`a field has the type ${type}`);
}

const groupDepthMax = 100;

function skipGroup(cursor: Cursor, start: number, depth: number): void {
  const end = start - wireType.groupStart + wireType.groupEnd;
  for (let tag = readTag(cursor); tag !== end; tag = readTag(cursor)) skipField(cursor, tag, depth);
}

/** Moves behind that many bytes; answers where they begin. */
function readLength(cursor: Cursor): number {
  const length = readUint32(cursor);
  const start = cursor.at;
  skipBytes(cursor, length);
  return start;
}

function skipBytes(cursor: Cursor, count: number): void {
  if (count > cursor.end - cursor.at) throw cutShort();
  cursor.at += count;
}

function readByte(cursor: Cursor): number {
  if (cursor.at >= cursor.end) throw cutShort();
  return cursor.bytes[cursor.at++] ?? 0;
}

function cutShort(): RangeError {
  return new RangeError('the message is cut short');
}

const varintBytesMax = 10;

function readLow(cursor: Cursor, first: number): number {
  let low = first & 0x7f;
  for (let index = 1; index < varintBytesMax; index += 1) {
    const byte = readByte(cursor);
    if (index < 5) low |= (byte & 0x7f) << (7 * index);
    if (byte < 0x80) return low;
  }
  throw tooLong();
}

/** Seven bits a byte, the lowest first; the fifth byte belongs to both halves. */
function readHalves(cursor: Cursor): { readonly low: number; readonly high: number } {
  let low = 0;
  let high = 0;
  for (let index = 0; index < varintBytesMax; index += 1) {
    const byte = readByte(cursor);
    const bits = byte & 0x7f;
    if (index < 5) low |= bits << (7 * index);
    if (index === 4) high = bits >>> 4;
    if (index > 4) high |= bits << (7 * index - 32);
    if (byte < 0x80) return { low, high };
  }
  throw tooLong();
}

function tooLong(): RangeError {
  return new RangeError(`a number has more than ${varintBytesMax} bytes`);
}
