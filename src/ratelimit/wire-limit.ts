/** The limit in an answer as bytes: how many in which time, and in the complete package what it is called. */
import { type Unit, windowSeconds } from '#config';
import type { CurrentLimit } from './limiter.ts';
import {
  type Cursor,
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
import { type Draft, writeNumber, writeText, writeWrapped } from './wire-writer.ts';

const tags = Object.freeze({
  requestsPerUnit: tagOf(1, wireType.varint),
  unit: tagOf(2, wireType.varint),
  name: tagOf(3, wireType.bytes),
  unitMultiplier: tagOf(4, wireType.bytes),
});

export function readLimit(cursor: Cursor): CurrentLimit | undefined {
  let requestsPerUnit = 0;
  let unit = 0;
  let name = '';
  let multiplier = 0;
  while (cursor.at < cursor.end) {
    const tag = readTag(cursor);
    if (tag === tags.requestsPerUnit) requestsPerUnit = readUint32(cursor);
    else if (tag === tags.unit) unit = readUint32(cursor);
    else if (tag === tags.name) name = readText(cursor);
    else if (tag === tags.unitMultiplier) multiplier = readMessage(cursor, readWrapped);
    else skipField(cursor, tag);
  }
  return limitOf(requestsPerUnit, unitOf(unit), multiplier, name === '' ? undefined : name);
}

/** Undefined for a unit that we do not know: a limit without a window says nothing. */
function limitOf(
  requestsPerUnit: number,
  unit: Unit | undefined,
  unitMultiplier: number,
  name: string | undefined,
): CurrentLimit | undefined {
  if (unit === undefined) return undefined;
  if (unitMultiplier <= 1)
    return { requestsPerUnit, unit, windowSeconds: windowSeconds({ unit, unitMultiplier: 1 }), name };
  return { requestsPerUnit, unit, unitMultiplier, windowSeconds: windowSeconds({ unit, unitMultiplier }), name };
}

export function writeWholeLimit(draft: Draft, limit: CurrentLimit): void {
  if ((limit.unitMultiplier ?? 1) !== 1) writeWrapped(draft, tags.unitMultiplier, limit.unitMultiplier ?? 1);
  writeText(draft, tags.name, limit.name ?? '');
  writeLimit(draft, limit);
}

export function writeLimit(draft: Draft, { requestsPerUnit, unit }: CurrentLimit): void {
  writeNumber(draft, tags.unit, wireUnits[unit]);
  writeNumber(draft, tags.requestsPerUnit, requestsPerUnit);
}
