/** Reads and writes the fields of protobuf messages, without a schema (protobuf.dev, Encoding). */

export interface ProtobufField {
  /** The number of the field and its wire type: `number * 8 + type`. */
  readonly tag: number;
  /** The content of text, bytes or a message. Undefined for a number. */
  readonly content: Buffer | undefined;
  /** A varint, as an int64. Inexact beyond 53 bits, and 0 for any other type. */
  readonly number: number;
}

const varintType = 0;
const fixed64Type = 1;
const lengthType = 2;
const fixed32Type = 5;

/** A varint has 7 bits in each byte, and 64 in total. */
const varintBytesMax = 10;
const tagMax = 2 ** 32;

/**
 * Returns at most the first `max` fields. Their content shares memory with the message. Throws a RangeError for bytes
 * that are not a message, and for a group, which the current language does not have.
 */
export function protobufFields(message: Uint8Array, max = Number.POSITIVE_INFINITY): ProtobufField[] {
  const reader = new Reader(message);
  const fields: ProtobufField[] = [];
  while (!reader.isAtEnd() && fields.length < max) fields.push(reader.field());
  return fields;
}

/** A class, because a message may have thousands of fields. */
class Reader {
  private readonly bytes: Buffer;
  private at = 0;

  constructor({ buffer, byteOffset, byteLength }: Uint8Array) {
    this.bytes = Buffer.from(buffer, byteOffset, byteLength);
  }

  isAtEnd(): boolean {
    return this.at === this.bytes.length;
  }

  field(): ProtobufField {
    const tag = this.varint();
    if (tag < 8 || tag >= tagMax) throw malformed();
    switch (tag % 8) {
      case varintType:
        return { tag, content: undefined, number: this.varint() };
      case lengthType:
        return { tag, content: this.take(this.varint()), number: 0 };
      case fixed64Type:
        this.take(8);
        break;
      case fixed32Type:
        this.take(4);
        break;
      default:
        throw malformed();
    }
    return { tag, content: undefined, number: 0 };
  }

  private varint(): number {
    const { bytes, at } = this;
    const first = bytes[at];
    if (first !== undefined && first < 128) {
      this.at += 1;
      return first;
    }
    let end = at;
    while ((bytes[end] ?? 0) >= 128) end += 1;
    if (end >= bytes.length || end - at >= varintBytesMax) throw malformed();
    this.at = end + 1;
    return end - at < exactBytes ? this.exactVarint(at, end) : this.longVarint(at, end);
  }

  /** `end` is the index of the last byte. */
  private exactVarint(at: number, end: number): number {
    let value = 0;
    for (let index = end; index >= at; index -= 1) value = value * 128 + ((this.bytes[index] ?? 0) & 127);
    return value;
  }

  private longVarint(at: number, end: number): number {
    let value = 0n;
    for (let index = end; index >= at; index -= 1) value = (value << 7n) | BigInt((this.bytes[index] ?? 0) & 127);
    return Number(BigInt.asIntN(64, value));
  }

  private take(length: number): Buffer {
    const end = this.at + length;
    if (length < 0 || end > this.bytes.length) throw malformed();
    const taken = this.bytes.subarray(this.at, end);
    this.at = end;
    return taken;
  }
}

/** Seven bytes have 49 bits, which a number represents exactly. */
const exactBytes = 7;

function malformed(): RangeError {
  return new RangeError('the message is malformed');
}

/** Formats a field with text, bytes or a message. A lone surrogate in the text becomes U+FFFD. */
export function protobufContent(field: number, content: string | Uint8Array): Buffer {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  return Buffer.concat([formatVarint(field * 8 + lengthType), formatVarint(bytes.length), bytes]);
}

/** Formats a field with a number that is not negative: an integer, an enum or, as 1, `true`. */
export function protobufNumber(field: number, value: number): Buffer {
  return Buffer.concat([formatVarint(field * 8 + varintType), formatVarint(value)]);
}

function formatVarint(value: number): Buffer {
  if (value < 128) return Buffer.of(value);
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  bytes.push(rest);
  return Buffer.from(bytes);
}
