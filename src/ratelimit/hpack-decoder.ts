/** Reading header blocks of HTTP/2 (HPACK, RFC 7541): every block must be read, in order, as each may refer to those before. */
import { type Field, staticTable } from './hpack-static-table.ts';
import { decodeHuffman } from './huffman.ts';

/** Throws for what is no header block; the connection is of no use then. */
export type DecodeBlock = (block: Buffer) => readonly Field[];

/** What a peer may assume of our table as long as we say nothing else. */
const tableBytesMax = 4_096;

/** Section 4.1: an estimate of what an entry costs beside its text. */
const entryBytes = 32;

export function createHpackDecoder(): DecodeBlock {
  const table = createTable();

  function fieldAt(index: number): Field {
    const field = index <= staticTable.length ? staticTable[index - 1] : table.at(index - staticTable.length - 1);
    if (field === undefined) throw new RangeError(`a header block refers to a field ${index} that is not there`);
    return field;
  }

  function readField(reader: Reader): Field | undefined {
    const first = reader.block[reader.at] ?? 0;
    if (first >= 0x80) return fieldAt(readInteger(reader, 7));
    if (first >= 0x40) return table.add(readLiteral(reader, 6));
    if (first < 0x20) return readLiteral(reader, 4);
    table.resize(readInteger(reader, 5));
    return undefined;
  }

  /** `bits` hold the number of the field that has the same name, or 0 before a name. */
  function readLiteral(reader: Reader, bits: number): Field {
    const index = readInteger(reader, bits);
    const name = index === 0 ? readString(reader) : fieldAt(index).name;
    return { name, value: readString(reader) };
  }

  return (block) => {
    const reader = { block, at: 0 };
    const fields: Field[] = [];
    while (reader.at < block.length) {
      const field = readField(reader);
      if (field !== undefined) fields.push(field);
    }
    return fields;
  };
}

/** The newest first, and no more than have room. */
function createTable() {
  const entries: Field[] = [];
  let bytes = 0;
  let bytesMax = tableBytesMax;

  function shrinkTo(max: number): void {
    while (bytes > max) {
      const oldest = entries.shift();
      bytes -= oldest === undefined ? bytes : bytesOf(oldest);
    }
  }

  return Object.freeze({
    at: (index: number): Field | undefined => entries[entries.length - 1 - index],
    /** A field that is larger than the table empties it. */
    add(field: Field): Field {
      const size = bytesOf(field);
      shrinkTo(Math.max(0, bytesMax - size));
      if (size > bytesMax) return field;
      entries.push(field);
      bytes += size;
      return field;
    },
    resize(max: number): void {
      if (max > tableBytesMax) throw new RangeError(`a header block wants a table of ${max} bytes`);
      bytesMax = max;
      shrinkTo(max);
    },
  });
}

function bytesOf({ name, value }: Field): number {
  return name.length + value.length + entryBytes;
}

interface Reader {
  readonly block: Buffer;
  at: number;
}

function readInteger(reader: Reader, bits: number): number {
  const most = 2 ** bits - 1;
  const value = readByte(reader) & most;
  return value < most ? value : most + readRest(reader);
}

/** Section 5.1: seven bits a byte, the lowest first. Four bytes are more than any block is long. */
function readRest(reader: Reader): number {
  let value = 0;
  for (let shift = 0; shift < 28; shift += 7) {
    const byte = readByte(reader);
    value += (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  throw new RangeError('a number in a header block is too large');
}

function readString(reader: Reader): string {
  const isHuffman = ((reader.block[reader.at] ?? 0) & 0x80) !== 0;
  const length = readInteger(reader, 7);
  const start = reader.at;
  if (length > reader.block.length - start) throw cutShort();
  reader.at += length;
  if (isHuffman) return decodeHuffman(reader.block.subarray(start, reader.at));
  return reader.block.toString('latin1', start, reader.at);
}

function readByte(reader: Reader): number {
  const byte = reader.block[reader.at++];
  if (byte === undefined) throw cutShort();
  return byte;
}

function cutShort(): RangeError {
  return new RangeError('a header block is cut short');
}
