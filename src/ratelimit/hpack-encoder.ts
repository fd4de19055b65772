/** Writing one and the same list of header fields again and again (HPACK, RFC 7541). */
import { type Field, staticTable } from './hpack-static-table.ts';

export interface BlockEncoder {
  /** The block to send next; blocks must be sent in the order in which they were asked for. */
  next(): Buffer;
  /** Of the peer's table, by its SETTINGS. */
  setTableBytes(bytes: number): void;
}

/** What the peer's table holds before it says anything. */
const tableBytesFirst = 4_096;

/** The first block teaches the peer the fields that it does not know; those that follow only name their numbers. */
export function createBlockEncoder(fields: readonly Field[]): BlockEncoder {
  const known = knownOf(fields);
  const literal = (pattern: Pattern) =>
    Buffer.concat(fields.map((field, index) => known[index] ?? format(field, pattern)));
  const plain = literal(plainPattern);
  const teaching = literal(teachingPattern);
  const numbered = numberedBlock(known);
  // A peer with a smaller table has it emptied, once, and is sent the fields themselves.
  const emptying = Buffer.concat([Buffer.from([0x20]), plain]);
  const tableBytes = fields.reduce((sum, { name, value }) => sum + name.length + value.length + 32, 0);
  let after: Buffer = numbered;
  let block: Buffer = tableBytes <= tableBytesFirst ? teaching : plain;
  if (block === plain) after = plain;
  return {
    next() {
      const present = block;
      block = after;
      return present;
    },
    setTableBytes(bytes) {
      if (bytes >= tableBytesFirst || after === plain) return;
      block = emptying;
      after = plain;
    },
  };
}

/** The bytes of those fields that are in the static table. */
function knownOf(fields: readonly Field[]): readonly (Buffer | undefined)[] {
  return fields.map(({ name, value }) => {
    const index = staticTable.findIndex((field) => field.name === name && field.value === value && value !== '');
    return index === -1 ? undefined : formatInteger(index + 1, 7, 0x80);
  });
}

/** The peer's table has the newest first: of those that were taught, the last. */
function numberedBlock(known: readonly (Buffer | undefined)[]): Buffer {
  const taught = known.filter((bytes) => bytes === undefined).length;
  let next = staticTable.length + taught;
  return Buffer.concat(known.map((bytes) => bytes ?? formatInteger(next--, 7, 0x80)));
}

interface Pattern {
  readonly bits: number;
  readonly first: number;
}

/** Section 6.2: a literal that is added to the table, and one that is not. */
const teachingPattern: Pattern = Object.freeze({ bits: 6, first: 0x40 });
const plainPattern: Pattern = Object.freeze({ bits: 4, first: 0 });

function format({ name, value }: Field, { bits, first }: Pattern): Buffer {
  const index = staticTable.findIndex((field) => field.name === name) + 1;
  const head = formatInteger(index, bits, first);
  return Buffer.concat(index === 0 ? [head, formatString(name), formatString(value)] : [head, formatString(value)]);
}

function formatString(text: string): Buffer {
  const bytes = Buffer.from(text, 'latin1');
  return Buffer.concat([formatInteger(bytes.length, 7, 0), bytes]);
}

/** Section 5.1. */
function formatInteger(value: number, bits: number, first: number): Buffer {
  const most = 2 ** bits - 1;
  if (value < most) return Buffer.from([first | value]);
  const bytes = [first | most];
  let rest = value - most;
  for (; rest >= 0x80; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80);
  return Buffer.from([...bytes, rest]);
}
