/** Watches a configuration directory, reads changed files, and reports the new configuration. */
import { on } from 'node:events';
import { extname, join, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { Worker } from 'node:worker_threads';
import { hasBytes, linksElsewhere } from '../directory.ts';
import {
  assembleFiles,
  emptyPart,
  type FilePart,
  freezeDeep,
  type LoadedConfiguration,
  type LoadOptions,
  type Reading,
  readFiles,
} from '../load.ts';
import { nextTurn } from '../turns.ts';
import { createFolderWatch, createQuietTimer, type Places } from './folders.ts';

export interface WatchOptions extends LoadOptions {
  readonly directory: string;
  /** The known configuration. Only a configuration that differs from it is reported. */
  readonly initial: LoadedConfiguration;
  /**
   * Receives the new configuration, including its errors. The caller decides what to use. `startedAtMs` is the time of
   * `performance.now()` when the reading started. The next reading waits until this has settled.
   */
  readonly onChange: (loaded: LoadedConfiguration, startedAtMs: number) => void | Promise<void>;
  /** Receives errors of the watcher itself, such as too many watched files. */
  readonly onError: (error: unknown) => void;
  /** How long to wait after the last change before reading, because files may be written in parts. @default 100 */
  readonly quietMs?: number;
  /** The total file size from which on a thread reads the directory, off the event loop. @default 8 KiB */
  readonly threadFromBytes?: number;
}

export interface ConfigurationWatch {
  /** Reads the directory immediately. Resolves when it has been read, and reported if it has changed. */
  readonly reload: () => Promise<void>;
  /** Stops watching and reporting. Can be called more than once. */
  readonly close: () => Promise<void>;
}

/**
 * Resolves when all further changes will be detected. Changes since `initial` was loaded are reported too. Kubernetes
 * updates a ConfigMap by replacing a symbolic link (`..data`), for which only the directory emits events.
 */
export async function watchConfiguration(options: WatchOptions): Promise<ConfigurationWatch> {
  const { directory, onError, quietMs } = options;
  const folders = [directory, join(directory, 'services'), join(directory, 'ratelimit')];
  const watch = createFolderWatch({ places, onChange: () => reader.schedule(), onError, quietMs });
  const reader = createReader(options, watch.refresh);

  async function places(): Promise<Places> {
    const links = await Promise.all(folders.slice(1).map(linksElsewhere));
    return {
      folders,
      links: [...folders, join(directory, 'users.yaml'), ...links.flat()],
      files: reader.filesElsewhere(),
    };
  }

  // Few files, if any, have changed since `initial` was loaded, so a thread is not worth starting.
  await reader.read(readHere);
  return Object.freeze({
    reload: () => reader.read(),
    async close() {
      await reader.close();
      await watch.close();
    },
  });
}

/** Smaller directories are read in less time than the event loop may be held. A thread needs about 200 ms and 50 MB. */
const threadFromBytesDefault = 8_192;

export interface ReadRequest extends LoadOptions {
  readonly directory: string;
  /** The known digests by file. */
  readonly known: ReadonlyMap<string, string>;
}

/** Resolves to undefined if the watch was closed in the meantime. */
type Read = (request: ReadRequest, closing: AbortSignal) => Promise<Reading | undefined>;

interface Reader {
  /** The files that records name, wherever they are. */
  readonly filesElsewhere: () => readonly string[];
  /** Schedules a reading, because something has changed. */
  readonly schedule: () => void;
  readonly read: (start?: Read) => Promise<void>;
  readonly close: () => Promise<void>;
}

/**
 * Runs one reading at a time, so that an older one never overtakes a newer one. Calls `prepare` before each of them.
 */
function createReader(options: WatchOptions, prepare: () => Promise<void>): Reader {
  const { directory, gatewayDomain, onChange, onError, quietMs } = options;
  const { threadFromBytes = threadFromBytesDefault } = options;
  let last = options.initial;
  let queue = Promise.resolve();
  const closing = new AbortController();
  const quiet = createQuietTimer(read, quietMs);

  async function readOnce(start: Read | undefined): Promise<void> {
    if (closing.signal.aborted) return;
    await prepare();
    const startedAtMs = performance.now();
    const readNow = start ?? ((await hasBytes(directory, threadFromBytes)) ? readInThread : readHere);
    const { files = [] } = last;
    const known = new Map(files.map((part) => [part.file, part]));
    const digests = new Map(files.map(({ file, digest }) => [file, digest]));
    const reading = await readNow({ directory, gatewayDomain, known: digests }, closing.signal);
    if (reading === undefined) return;
    await nextTurn();
    const loaded = await assembleFiles(reading, known, options, last.upstreamFiles);
    if (isSame(loaded, last)) return;
    const watched = filesElsewhere();
    last = loaded;
    await onChange(loaded, startedAtMs);
    // A file that is new in the records may have changed before it was watched.
    if (!isDeepStrictEqual(watched, filesElsewhere())) quiet.schedule();
  }

  function read(start?: Read): Promise<void> {
    quiet.cancel();
    queue = queue.then(() => readOnce(start)).catch(onError);
    return queue;
  }

  function filesElsewhere(): readonly string[] {
    return (last.upstreamFiles ?? []).map(({ name }) => resolve(directory, name));
  }

  return {
    filesElsewhere,
    read,
    schedule() {
      if (!closing.signal.aborted) quiet.schedule();
    },
    close() {
      closing.abort();
      quiet.cancel();
      return queue;
    },
  };
}

/** Compares digests, errors and notices. Files with the same bytes have the same contents. */
function isSame(a: LoadedConfiguration, b: LoadedConfiguration): boolean {
  const { upstreamFiles = [] } = a;
  const { upstreamFiles: others = [] } = b;
  if (upstreamFiles.length !== others.length || upstreamFiles.some((one, index) => one !== others[index])) return false;
  const keyOf = ({ files = [], errors, notices }: LoadedConfiguration) =>
    JSON.stringify([files.map(({ file, digest }) => [file, digest]), errors, notices]);
  return keyOf(a) === keyOf(b);
}

async function readHere({ directory, known, ...options }: ReadRequest, closing: AbortSignal) {
  const reading = await readFiles(directory, options, known);
  return closing.aborted ? undefined : reading;
}

/** Starts a thread for a single reading. */
async function readInThread(request: ReadRequest, closing: AbortSignal): Promise<Reading | undefined> {
  const worker = new Worker(new URL(`./read-thread${extname(import.meta.url)}`, import.meta.url), {
    workerData: request,
  });
  worker.unref();
  const join = createJoin();
  try {
    for await (const [part] of on(worker, 'message', { signal: closing, close: ['exit'] })) {
      const reading = join(part as ReadingPart);
      if (reading !== undefined) return reading;
      worker.postMessage('next');
    }
  } catch (error) {
    if (!closing.aborted) throw error;
    await worker.terminate();
    return undefined;
  }
  throw new Error('the thread that reads the configuration exited without a result');
}

/** A part of a reading, sent as one message. Receiving a large reading at once would block the event loop for long. */
interface ReadingPart extends Reading {
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
      head = { directory: rest.directory, files: [], errors: [], notices: [] };
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
function createJoin(): (part: ReadingPart) => Reading | undefined {
  const changed = new Map<string, FilePart>();
  let head: Reading | undefined;
  return function join(part) {
    // Here, because freezing all records at once would block the event loop for long.
    freezeDeep(part);
    head ??= part;
    for (const piece of part.changed) {
      const known = changed.get(piece.file);
      changed.set(
        piece.file,
        known === undefined ? piece : { ...known, records: [...known.records, ...piece.records] },
      );
    }
    const { directory, files, errors, notices } = head;
    return part.isLast ? { directory, files, errors, notices, changed: [...changed.values()] } : undefined;
  };
}
