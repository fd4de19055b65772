/** Watches a configuration directory, reads the files that have changed, and reports what the directory says then. */
import { extname, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { FSWatcher } from 'chokidar';
import { hasBytes } from '../directory.ts';
import { assembleFiles, type LoadOptions, type Reading, readFiles } from '../load.ts';
import type { LoadedConfiguration } from '../model.ts';
import { finishInTurns } from '../work.ts';
import { createJoin, type ReadingPart } from './reading-parts.ts';

export interface WatchOptions extends LoadOptions {
  readonly directory: string;
  /** What is known already: only a directory that differs from it is reported. */
  readonly initial: LoadedConfiguration;
  /**
   * Gets what the directory says now, errors included; the caller decides what to keep of it. `startedAtMs` is when its
   * reading began, on the clock of `performance.now`. The next reading waits for it.
   */
  readonly onChange: (loaded: LoadedConfiguration, startedAtMs: number) => void | Promise<void>;
  /** For failures of the watching itself, such as too many watched files. */
  readonly onError: (error: unknown) => void;
  /** How long nothing must change before the directory is read: files are written in parts. @default 100 */
  readonly quietMs?: number;
  /** From this many bytes of files on, the directory is read in a thread, off the event loop. @default 32 KiB */
  readonly threadFromBytes?: number;
}

export interface ConfigurationWatch {
  /** Reads the directory now. Resolves when it has been read, and reported if it has changed. */
  readonly reload: () => Promise<void>;
  /** Reports nothing more. May be called again. */
  readonly close: () => Promise<void>;
}

/**
 * Resolves when every further change will be seen; a change between `initial` and then is reported as well. Kubernetes
 * replaces a ConfigMap by pointing a symbolic link (`..data`) elsewhere, which only the directory's own events show.
 */
export async function watchConfiguration(options: WatchOptions): Promise<ConfigurationWatch> {
  const { directory, onError } = options;
  const reader = createReader(options);
  // Loaded late: a process that watches nothing does not need it.
  const { watch } = await import('chokidar');
  // The folders one by one and no deeper: the directory may be one with much else in it.
  const paths = [directory, join(directory, 'services'), join(directory, 'ratelimit')];
  // Not persistent: it must not keep a process alive that has nothing else to do.
  const watcher = watch(paths, { depth: 0, ignoreInitial: true, persistent: false });
  // The raw events as well: of two changes in quick succession the others may omit the second.
  watcher.on('raw', reader.touch).on('all', reader.touch).on('error', onError);
  // When a folder goes and comes back, chokidar reports that and then no change in it, unless it is added again.
  watcher.on('addDir', (path) => void (paths.includes(path) && watcher.unwatch(path).add(path)));
  await ready(watcher);
  await reader.read(readHere);
  return Object.freeze({
    reload: () => reader.read(),
    async close() {
      await watcher.close();
      await reader.close();
    },
  });
}

/** Resolves also when watching fails: that is reported, and must not prevent the start. */
function ready(watcher: FSWatcher): Promise<void> {
  return new Promise((resolve) => {
    watcher.once('ready', resolve).once('error', () => resolve());
  });
}

const quietMsDefault = 100;
/** Files that are written without a pause are read all the same after this many quiet times. */
const quietTimesMax = 10;
/** Less is read faster than a thread starts, which takes some 200 ms and 50 MB. */
const threadFromBytesDefault = 32_768;

export interface ReadRequest extends LoadOptions {
  readonly directory: string;
  /** Digests by file. */
  readonly known: ReadonlyMap<string, string>;
}

/** Undefined when the watch was closed meanwhile. */
type Read = (request: ReadRequest, closing: AbortSignal) => Promise<Reading | undefined>;

interface Reader {
  /** Something has changed. */
  readonly touch: () => void;
  readonly read: (start?: Read) => Promise<void>;
  readonly close: () => Promise<void>;
}

/** One reading at a time, so that an older one never overtakes a newer. */
function createReader(options: WatchOptions): Reader {
  const { directory, gatewayDomain, onChange, onError, quietMs = quietMsDefault } = options;
  const { threadFromBytes = threadFromBytesDefault } = options;
  let last = options.initial;
  let queue = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  let firstTouchMs: number | undefined;
  const closing = new AbortController();

  async function readOnce(start: Read): Promise<void> {
    if (closing.signal.aborted) return;
    const startedAtMs = performance.now();
    const { files = [] } = last;
    const known = new Map(files.map((part) => [part.file, part]));
    const digests = new Map(files.map(({ file, digest }) => [file, digest]));
    const reading = await start({ directory, gatewayDomain, known: digests }, closing.signal);
    if (reading === undefined) return;
    const loaded = await finishInTurns(assembleFiles(reading, known, options));
    if (isSame(loaded, last)) return;
    last = loaded;
    await onChange(loaded, startedAtMs);
  }

  function read(start?: Read): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    firstTouchMs = undefined;
    queue = queue.then(async () => readOnce(start ?? (await startOf(directory, threadFromBytes)))).catch(onError);
    return queue;
  }

  return {
    read,
    touch() {
      if (closing.signal.aborted) return;
      const nowMs = performance.now();
      firstTouchMs ??= nowMs;
      if (timer !== undefined && nowMs - firstTouchMs > quietTimesMax * quietMs) return;
      clearTimeout(timer);
      timer = setTimeout(read, quietMs);
    },
    close() {
      closing.abort();
      clearTimeout(timer);
      return queue;
    },
  };
}

/** Files with the same bytes say the same, so only the directory's own errors and notices can differ besides. */
function isSame(a: LoadedConfiguration, b: LoadedConfiguration): boolean {
  const keyOf = ({ files = [], errors, notices }: LoadedConfiguration) =>
    JSON.stringify([files.map(({ file, digest }) => [file, digest]), errors, notices]);
  return keyOf(a) === keyOf(b);
}

async function startOf(directory: string, threadFromBytes: number): Promise<Read> {
  return (await hasBytes(directory, threadFromBytes)) ? readInThread : readHere;
}

async function readHere({ directory, known, ...options }: ReadRequest, closing: AbortSignal) {
  const reading = await readFiles(directory, options, known);
  return closing.aborted ? undefined : reading;
}

/** The thread lives for one reading. */
async function readInThread(request: ReadRequest, closing: AbortSignal): Promise<Reading | undefined> {
  const worker = new Worker(new URL(`./read-thread${extname(import.meta.url)}`, import.meta.url), {
    workerData: request,
  });
  worker.unref();
  const end = () => void worker.terminate();
  closing.addEventListener('abort', end);
  try {
    return await new Promise((resolve, reject) => {
      const join = createJoin();
      worker.on('message', (part: ReadingPart) => {
        const reading = join(part);
        if (reading === undefined) worker.postMessage('next');
        else resolve(reading);
      });
      worker.once('error', reject);
      worker.once('exit', () =>
        closing.aborted
          ? resolve(undefined)
          : reject(new Error('the thread that reads the configuration gave no result')),
      );
    });
  } finally {
    closing.removeEventListener('abort', end);
  }
}
