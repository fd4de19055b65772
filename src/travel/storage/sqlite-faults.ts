/** Detects faults of an open SQLite file: it was moved, replaced or made read-only, or its disk is full or failing. */
import { accessSync, constants, realpathSync, type Stats, statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { CompiledQuery, type Kysely } from 'kysely';
import { driverMessage, sqliteCodeOf } from './database.ts';
import type { Tables } from './schema.ts';

/** Detects if the file was moved, replaced or made read-only after it was opened, so that bookings would be lost. */
export function createFileCheck(file: string): () => string | undefined {
  const opened = statSync(file);
  // Only the log contains the latest commits. If the file is a symbolic link, SQLite names the log after its target.
  const log = `${realpathSync(file)}-wal`;
  let openedLog: FileState;
  return function findFileFault() {
    const found = statOf(file);
    if (found === 'unknown') return 'The database file cannot be reached: give this user access to its directory.';
    if (found === undefined)
      return 'The database file was deleted: restore it, or restart the server to create a new one.';
    if (!isSame(found, opened)) return 'The database file was replaced: restart the server to use the new one.';
    // SQLite creates the log with the first transaction.
    openedLog ??= statOf(log);
    if (openedLog !== undefined && !isSame(statOf(log), openedLog))
      return "The database's log, the file that ends in -wal, was deleted or replaced: restart the server, which saves the log when it stops.";
    return isWritable(file, found) ? undefined : 'The database file is read-only: make it writable.';
  };
}

/** Undefined if the file does not exist. `unknown` if it cannot be checked, such as without access to its directory. */
type FileState = Stats | 'unknown' | undefined;

function statOf(file: string): FileState {
  try {
    return statSync(file, { throwIfNoEntry: false });
  } catch {
    return 'unknown';
  }
}

function isSame(found: FileState, opened: FileState): boolean {
  return (
    typeof found === 'object' && typeof opened === 'object' && found.ino === opened.ino && found.dev === opened.dev
  );
}

/** Checks the mode as well, because the superuser can write to any file. */
function isWritable(file: string, { mode }: Stats): boolean {
  try {
    accessSync(file, constants.W_OK);
    return (mode & 0o222) !== 0;
  } catch {
    return false;
  }
}

export interface DiskCheck {
  /** Records the error of a statement if the disk caused it. */
  readonly reportError: (error: unknown) => void;
  /** Returns the fault after a failed write, until a write succeeds. */
  readonly findFault: (kysely: Kysely<Tables>) => Promise<string | undefined>;
}

/** Returns what to do if the disk caused the error of a statement. */
export function diskFaultOf(error: unknown): string | undefined {
  return diskFaults[sqliteCodeOf(error) ?? 0];
}

/** By result code: FULL, and IOERR, which is also the result of an exceeded quota. */
const diskFaults: Readonly<Record<number, string>> = {
  13: 'The disk of the database is full: free some space.',
  10: 'The database file cannot be written: check its disk.',
};

/** Write more than a booking does: after one has failed, there may still be room for less. */
const trialWrites = [
  "insert or replace into answers values ('', '', zeroblob(131072), '')",
  "delete from answers where id = ''",
].map((text) => CompiledQuery.raw(text));

/**
 * Detects a full or failing disk by failed writes, because the free space says nothing about the next write. After a
 * failure, it tries writes that leave nothing, because a server that is not ready gets no bookings to write.
 */
export function createDiskCheck(): DiskCheck {
  let fault: string | undefined;
  return {
    reportError(error) {
      fault = diskFaultOf(error) ?? fault;
    },
    async findFault(kysely) {
      if (fault === undefined) return undefined;
      try {
        for (const write of trialWrites) await kysely.executeQuery(write);
        fault = undefined;
      } catch {
        // The disk is still full, or the file is busy.
      }
      return fault;
    },
  };
}

/** Reads the schema version, which SQLite always reads from the file. */
export function findReadFault(reader: DatabaseSync): string | undefined {
  try {
    reader.prepare('pragma schema_version').get();
    return undefined;
  } catch (error) {
    return `The database cannot be read: ${driverMessage(error)}.`;
  }
}
