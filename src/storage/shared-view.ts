/** One view of the database for the reads of one turn of the event loop, so that they share one lock of the file. */
import type { DatabaseSync } from 'node:sqlite';

export interface SharedView {
  /** Before each read. The first of a turn stands alone; from the second on, all see what was committed by then. */
  readonly enter: () => void;
  /** After a write of our own, so that whoever waited for it reads it. */
  readonly leave: () => void;
}

/** SQLite locks and unlocks a file around each read outside a transaction: two system calls, and half of what it costs. */
export function createSharedView(reader: DatabaseSync): SharedView {
  const [begin, commit] = [reader.prepare('begin'), reader.prepare('commit')];
  let readsInTurn = 0;

  function leave(): void {
    readsInTurn = 0;
    // A closed database refuses even the question whether a transaction is open.
    if (reader.isOpen && reader.isTransaction) commit.run();
  }

  return Object.freeze({
    enter() {
      readsInTurn += 1;
      if (readsInTurn === 1) setImmediate(leave);
      else if (readsInTurn === 2) begin.run();
    },
    leave,
  });
}
