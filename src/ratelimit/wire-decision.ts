/** An answer as bytes. Both packages of the protocol number its fields alike; the older one lacks names, waits and headers. */
import type { CurrentLimit, Decision, DescriptorStatus, ResponseHeader } from './limiter.ts';
import { readLimit, writeLimit, writeWholeLimit } from './wire-limit.ts';
import {
  type Cursor,
  cursorOver,
  readInt64,
  readLatin1,
  readMessage,
  readTag,
  readText,
  readUint32,
  skipField,
  tagOf,
  wireType,
} from './wire-reader.ts';
import {
  createFormat,
  type Draft,
  type Write,
  writeMessage,
  writeMessages,
  writeNumber,
  writeText,
  writeWrapped,
} from './wire-writer.ts';

export interface DecisionCodec {
  /** Throws for bytes that are no answer. Of a field that is there twice the last counts. */
  parse(bytes: Buffer): Decision;
  format(decision: Decision): Buffer;
}

/** `complete`: the package has a field for everything that we can tell. */
export function createDecisionCodec(complete: boolean): DecisionCodec {
  const writeOneStatus: Write<DescriptorStatus> = complete ? writeWholeStatus : writeStatus;
  return Object.freeze({
    parse: (bytes: Buffer) => readDecision(cursorOver(bytes)),
    format: createFormat<Decision>((draft, { overallCode, statuses, responseHeaders }) => {
      if (complete && responseHeaders !== undefined) writeMessages(draft, tags.header, responseHeaders, writeHeader);
      writeMessages(draft, tags.status, statuses, writeOneStatus);
      writeNumber(draft, tags.overallCode, codes[overallCode]);
    }),
  });
}

const codes = Object.freeze({ OK: 1, OVER_LIMIT: 2 });

const tags = Object.freeze({
  overallCode: tagOf(1, wireType.varint),
  status: tagOf(2, wireType.bytes),
  header: tagOf(3, wireType.bytes),
});

const statusTags = Object.freeze({
  code: tagOf(1, wireType.varint),
  currentLimit: tagOf(2, wireType.bytes),
  limitRemaining: tagOf(3, wireType.varint),
  untilReset: tagOf(4, wireType.bytes),
});

const durationTags = Object.freeze({ seconds: tagOf(1, wireType.varint), nanos: tagOf(2, wireType.varint) });

const headerTags = Object.freeze({
  key: tagOf(1, wireType.bytes),
  value: tagOf(2, wireType.bytes),
  rawValue: tagOf(3, wireType.bytes),
});

function readDecision(cursor: Cursor): Decision {
  let code = 0;
  const statuses: DescriptorStatus[] = [];
  let responseHeaders: ResponseHeader[] | undefined;
  while (cursor.at < cursor.end) {
    const tag = readTag(cursor);
    if (tag === tags.overallCode) code = readUint32(cursor);
    else if (tag === tags.status) statuses.push(readMessage(cursor, readStatus));
    else if (tag === tags.header) {
      responseHeaders ??= [];
      responseHeaders.push(readMessage(cursor, readHeader));
    } else skipField(cursor, tag);
  }
  const overallCode = overallCodeOf(code);
  return responseHeaders === undefined ? { overallCode, statuses } : { overallCode, statuses, responseHeaders };
}

/** An empty message is a valid one of this protocol, but it answers nothing. */
function overallCodeOf(code: number): Decision['overallCode'] {
  if (code === codes.OK) return 'OK';
  if (code === codes.OVER_LIMIT) return 'OVER_LIMIT';
  throw new Error(`overall_code is ${code === 0 ? 'UNKNOWN' : code}`);
}

function readStatus(cursor: Cursor): DescriptorStatus {
  let code = 0;
  let currentLimit: CurrentLimit | undefined;
  let limitRemaining = 0;
  let resetSeconds: number | undefined;
  while (cursor.at < cursor.end) {
    const tag = readTag(cursor);
    if (tag === statusTags.code) code = readUint32(cursor);
    else if (tag === statusTags.currentLimit) currentLimit = readMessage(cursor, readLimit);
    else if (tag === statusTags.limitRemaining) limitRemaining = readUint32(cursor);
    else if (tag === statusTags.untilReset) resetSeconds = readMessage(cursor, readDuration);
    else skipField(cursor, tag);
  }
  return { code: code === codes.OVER_LIMIT ? 'OVER_LIMIT' : 'OK', currentLimit, limitRemaining, resetSeconds };
}

/** In whole seconds, rounded away from 0. */
function readDuration(cursor: Cursor): number {
  let seconds = 0;
  let nanos = 0;
  while (cursor.at < cursor.end) {
    const tag = readTag(cursor);
    if (tag === durationTags.seconds) seconds = readInt64(cursor);
    else if (tag === durationTags.nanos) nanos = readInt64(cursor);
    else skipField(cursor, tag);
  }
  return seconds + Math.sign(nanos);
}

/** Of the two values one is set. */
function readHeader(cursor: Cursor): ResponseHeader {
  let name = '';
  let value = '';
  let rawValue = '';
  while (cursor.at < cursor.end) {
    const tag = readTag(cursor);
    if (tag === headerTags.key) name = readText(cursor);
    else if (tag === headerTags.value) value = readText(cursor);
    else if (tag === headerTags.rawValue) rawValue = readLatin1(cursor);
    else skipField(cursor, tag);
  }
  return { name, value: value || rawValue };
}

function writeWholeStatus(draft: Draft, status: DescriptorStatus): void {
  if (status.resetSeconds !== undefined) writeWrapped(draft, statusTags.untilReset, status.resetSeconds);
  writeCounted(draft, status, writeWholeLimit);
}

function writeStatus(draft: Draft, status: DescriptorStatus): void {
  writeCounted(draft, status, writeLimit);
}

function writeCounted(draft: Draft, status: DescriptorStatus, write: Write<CurrentLimit>): void {
  const { code, currentLimit, limitRemaining } = status;
  writeNumber(draft, statusTags.limitRemaining, limitRemaining);
  if (currentLimit !== undefined) writeMessage(draft, statusTags.currentLimit, currentLimit, write);
  writeNumber(draft, statusTags.code, codes[code]);
}

function writeHeader(draft: Draft, { name, value }: ResponseHeader): void {
  writeText(draft, headerTags.value, value);
  writeText(draft, headerTags.key, name);
}
