/** Splits the result of a reading into messages that the event loop can receive without being blocked for long. */
import { emptyPart, type Reading } from '../load.ts';
import type { FilePart } from '../model.ts';

export interface ReadingPart extends Reading {
  readonly isLast: boolean;
}

/** The maximum number of records in a message. */
const recordsMax = 500;

/**
 * Splits a reading into parts. Spreads the records of a large file over several parts. The first part has everything
 * else.
 */
export function* splitReading({ changed, ...rest }: Reading): Generator<ReadingPart> {
  let waiting: FilePart[] = [];
  let count = 0;
  let head: Omit<Reading, 'changed'> = rest;
  for (const piece of changed.flatMap(splitFile)) {
    const size = Math.max(1, piece.records.length);
    if (waiting.length > 0 && count + size > recordsMax) {
      yield { ...head, changed: waiting, isLast: false };
      head = { files: [], errors: [], notices: [] };
      waiting = [];
      count = 0;
    }
    waiting.push(piece);
    count += size;
  }
  yield { ...head, changed: waiting, isLast: true };
}

function splitFile({ records, ...rest }: FilePart): readonly FilePart[] {
  const pieces: FilePart[] = [{ ...rest, records: records.slice(0, recordsMax) }];
  const { file, digest } = rest;
  for (let start = recordsMax; start < records.length; start += recordsMax)
    pieces.push({ ...emptyPart(file), digest, records: records.slice(start, start + recordsMax) });
  return pieces;
}

/** Returns a function that takes the parts in order and returns the whole reading with the last one. */
export function createJoin(): (part: ReadingPart) => Reading | undefined {
  const changed = new Map<string, FilePart>();
  let head: Reading | undefined;
  return function join(part) {
    head ??= part;
    for (const piece of part.changed) {
      const known = changed.get(piece.file);
      changed.set(
        piece.file,
        known === undefined ? piece : { ...known, records: [...known.records, ...piece.records] },
      );
    }
    const { files, errors, notices } = head;
    return part.isLast ? { files, errors, notices, changed: [...changed.values()] } : undefined;
  };
}
