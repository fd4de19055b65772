/** A request as bytes. Both packages of the protocol number its fields alike; the older one lacks a descriptor's own limit and hits. */

import type { Descriptor, Entry, LimitOverride, RateLimitRequest } from './limiter.ts';
import { InvalidRequest } from './limiter.ts';
import {
  type Cursor,
  cursorOver,
  readMessage,
  readTag,
  readText,
  readUint32,
  readWrapped,
  skipField,
  tagOf,
  wireType,
} from './wire-reader.ts';
import { unitOf, wireUnits } from './wire-units.ts';
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

export interface RequestCodec {
  /** Throws for bytes that are no request. Of a field that is there twice the last counts. */
  parse(bytes: Buffer): RateLimitRequest;
  /** Throws an `InvalidRequest` for a limit that the protocol has no field for. */
  format(request: RateLimitRequest): Buffer;
}

/** `complete`: a descriptor may have a limit and hits of its own; otherwise they are unknown fields. */
export function createRequestCodec(complete: boolean): RequestCodec {
  const readDescriptor = complete ? readWhole : readEntries;
  const writeDescriptor: Write<Descriptor> = complete ? writeWhole : writeEntries;
  return Object.freeze({
    parse: (bytes: Buffer) => readRequest(cursorOver(bytes), readDescriptor),
    format: createFormat<RateLimitRequest>((draft, { domain, descriptors, hitsAddend = 0 }) => {
      writeNumber(draft, tags.hitsAddend, hitsAddend);
      writeMessages(draft, tags.descriptor, descriptors, writeDescriptor);
      writeText(draft, tags.domain, domain);
    }),
  });
}

const tags = Object.freeze({
  domain: tagOf(1, wireType.bytes),
  descriptor: tagOf(2, wireType.bytes),
  hitsAddend: tagOf(3, wireType.varint),
});

const descriptorTags = Object.freeze({
  entry: tagOf(1, wireType.bytes),
  limit: tagOf(2, wireType.bytes),
  hitsAddend: tagOf(3, wireType.bytes),
});

const entryTags = Object.freeze({ key: tagOf(1, wireType.bytes), value: tagOf(2, wireType.bytes) });

const limitTags = Object.freeze({ requestsPerUnit: tagOf(1, wireType.varint), unit: tagOf(2, wireType.varint) });

function readRequest(cursor: Cursor, readDescriptor: (cursor: Cursor) => Descriptor): RateLimitRequest {
  let domain = '';
  const descriptors: Descriptor[] = [];
  let hitsAddend = 0;
  while (cursor.at < cursor.end) {
    const tag = readTag(cursor);
    if (tag === tags.domain) domain = readText(cursor);
    else if (tag === tags.descriptor) descriptors.push(readMessage(cursor, readDescriptor));
    else if (tag === tags.hitsAddend) hitsAddend = readUint32(cursor);
    else skipField(cursor, tag);
  }
  return { domain, descriptors, hitsAddend };
}

function readEntries(cursor: Cursor): Descriptor {
  const entries: Entry[] = [];
  while (cursor.at < cursor.end) {
    const tag = readTag(cursor);
    if (tag === descriptorTags.entry) entries.push(readMessage(cursor, readEntry));
    else skipField(cursor, tag);
  }
  return { entries };
}

function readWhole(cursor: Cursor): Descriptor {
  const entries: Entry[] = [];
  let limit: LimitOverride | undefined;
  let hitsAddend: number | undefined;
  while (cursor.at < cursor.end) {
    const tag = readTag(cursor);
    if (tag === descriptorTags.entry) entries.push(readMessage(cursor, readEntry));
    else if (tag === descriptorTags.limit) limit = readMessage(cursor, readLimit);
    else if (tag === descriptorTags.hitsAddend) hitsAddend = readMessage(cursor, readWrapped);
    else skipField(cursor, tag);
  }
  if (limit === undefined && hitsAddend === undefined) return { entries };
  return { entries, ...(limit && { limit }), ...(hitsAddend !== undefined && { hitsAddend }) };
}

function readEntry(cursor: Cursor): Entry {
  let key = '';
  let value = '';
  while (cursor.at < cursor.end) {
    const tag = readTag(cursor);
    if (tag === entryTags.key) key = readText(cursor);
    else if (tag === entryTags.value) value = readText(cursor);
    else skipField(cursor, tag);
  }
  return { key, value };
}

function readLimit(cursor: Cursor): LimitOverride {
  let requestsPerUnit = 0;
  let unit = 0;
  while (cursor.at < cursor.end) {
    const tag = readTag(cursor);
    if (tag === limitTags.requestsPerUnit) requestsPerUnit = readUint32(cursor);
    else if (tag === limitTags.unit) unit = readUint32(cursor);
    else skipField(cursor, tag);
  }
  return { requestsPerUnit, unit: unitOf(unit) };
}

function writeWhole(draft: Draft, descriptor: Descriptor): void {
  const { limit, hitsAddend } = descriptor;
  if (hitsAddend !== undefined) writeWrapped(draft, descriptorTags.hitsAddend, hitsAddend);
  if (limit?.unit !== undefined) writeMessage(draft, descriptorTags.limit, limit, writeLimit);
  writeEntries(draft, descriptor);
}

function writeEntries(draft: Draft, { entries, limit }: Descriptor): void {
  if ((limit?.unitMultiplier ?? 1) !== 1) throw new InvalidRequest('a limit with a unit_multiplier cannot be sent');
  writeMessages(draft, descriptorTags.entry, entries, writeEntry);
}

function writeEntry(draft: Draft, { key, value }: Entry): void {
  writeText(draft, entryTags.value, value);
  writeText(draft, entryTags.key, key);
}

function writeLimit(draft: Draft, { requestsPerUnit, unit }: LimitOverride): void {
  if (unit !== undefined) writeNumber(draft, limitTags.unit, wireUnits[unit]);
  writeNumber(draft, limitTags.requestsPerUnit, requestsPerUnit);
}
