/** Writing Protocol Buffers from the end to the beginning: when a message's length is written, all that it holds is there. */
import { tagOf, wireType } from './wire-reader.ts';

/** What is written lies from `at` to the end of `bytes`. */
export interface Draft {
  bytes: Buffer;
  at: number;
}

export type Write<T> = (draft: Draft, value: T) => void;

/** Most messages fit; others make the draft grow, and one that was long is not to be paid for ever after. */
const draftBytes = 1_024;
const draftBytesMax = 65_536;

/** Gives a function that makes bytes of a message; its draft is used again and again. */
export function createFormat<T>(write: Write<T>): (message: T) => Buffer {
  const draft: Draft = { bytes: Buffer.allocUnsafe(draftBytes), at: draftBytes };
  return (message) => {
    if (draft.bytes.length > draftBytesMax) draft.bytes = Buffer.allocUnsafe(draftBytes);
    draft.at = draft.bytes.length;
    write(draft, message);
    return Buffer.from(draft.bytes.subarray(draft.at));
  };
}

/** Left out when 0: what is not there is read as 0. Whole numbers from 0 to 2 ** 53. */
export function writeNumber(draft: Draft, tag: number, value: number): void {
  if (value === 0) return;
  writeVarint(draft, value);
  writeVarint(draft, tag);
}

/** A UInt32Value, a UInt64Value or the seconds of a Duration: a message of one number, which tells 0 from nothing. */
export function writeWrapped(draft: Draft, tag: number, value: number): void {
  const before = writtenBytes(draft);
  writeVarint(draft, value);
  writeVarint(draft, wrappedTag);
  writeHead(draft, tag, before);
}

const wrappedTag = tagOf(1, wireType.varint);

/** Left out when empty. */
export function writeText(draft: Draft, tag: number, text: string): void {
  if (text === '') return;
  const before = writtenBytes(draft);
  takeRoom(draft, Buffer.byteLength(text));
  draft.bytes.write(text, draft.at);
  writeHead(draft, tag, before);
}

export function writeMessage<T>(draft: Draft, tag: number, message: T, write: Write<T>): void {
  const before = writtenBytes(draft);
  write(draft, message);
  writeHead(draft, tag, before);
}

/** The last first. */
export function writeMessages<T>(draft: Draft, tag: number, messages: readonly T[], write: Write<T>): void {
  for (let index = messages.length - 1; index >= 0; index -= 1) writeMessage(draft, tag, messages[index] as T, write);
}

function writeHead(draft: Draft, tag: number, before: number): void {
  writeVarint(draft, writtenBytes(draft) - before);
  writeVarint(draft, tag);
}

function writtenBytes({ bytes, at }: Draft): number {
  return bytes.length - at;
}

function writeVarint(draft: Draft, value: number): void {
  takeRoom(draft, varintBytes(value));
  const { bytes } = draft;
  let { at } = draft;
  let rest = value;
  for (; rest >= 0x80; at += 1) {
    bytes[at] = (rest % 0x80) | 0x80;
    rest = Math.floor(rest / 0x80);
  }
  bytes[at] = rest;
}

function varintBytes(value: number): number {
  let count = 1;
  for (let rest = value; rest >= 0x80; count += 1) rest = Math.floor(rest / 0x80);
  return count;
}

function takeRoom(draft: Draft, count: number): void {
  if (count > draft.at) grow(draft, count);
  draft.at -= count;
}

function grow(draft: Draft, count: number): void {
  const written = draft.bytes.subarray(draft.at);
  const bytes = Buffer.allocUnsafe(2 * (draft.bytes.length + count));
  draft.at = bytes.length - written.length;
  bytes.set(written, draft.at);
  draft.bytes = bytes;
}
