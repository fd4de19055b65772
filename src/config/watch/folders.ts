/** Watches folders and files for changes, also when they are links that a deployment swaps. */
import { once } from 'node:events';
import { type Stats, unwatchFile, watchFile } from 'node:fs';
import { basename, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { FSWatcher } from 'chokidar';

/** What is watched at present. */
export interface Places {
  /** Each without its subfolders, because a folder may contain many other files. */
  readonly folders: readonly string[];
  /** Files and folders that may be links: their targets may be swapped elsewhere, where no event is seen. */
  readonly links: readonly string[];
  /** Files in folders that are not watched. They are looked at every two seconds. */
  readonly files: readonly string[];
}

export interface FolderWatchOptions {
  readonly places: () => Promise<Places>;
  readonly onChange: () => void;
  /** Receives errors of the watcher itself, such as too many watched files. */
  readonly onError: (error: unknown) => void;
  /** The setting of the reader. Links and files are looked at twenty times less often. */
  readonly quietMs?: number | undefined;
}

export interface FolderWatch {
  /** Watches the places of now. All changes after it will be reported, so call it before each reading. */
  readonly refresh: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Nothing is watched before the first `refresh`. */
export function createFolderWatch({
  places,
  onChange,
  onError,
  quietMs = quietMsDefault,
}: FolderWatchOptions): FolderWatch {
  let folders: readonly string[] = [];
  let names = new Set<string | null>();
  let polledLinks: ReadonlySet<string> = new Set();
  let polledFiles: ReadonlySet<string> = new Set();
  let isReplaced = false;
  let watcher: FSWatcher | undefined;

  async function open(): Promise<FSWatcher> {
    isReplaced = false;
    // Loaded on demand, because a process that does not watch a directory does not need it.
    const { watch } = await import('chokidar');
    // Not persistent, so that the watcher does not keep the process alive.
    const opened = watch([...folders], { depth: 0, ignoreInitial: true, persistent: false });
    opened.on('error', onError);
    // Listens to raw events too, because the others may omit the second of two changes in quick succession.
    opened.on('raw', (event, name) => {
      if (event === 'rename' && names.has(name)) isReplaced = true;
      onChange();
    });
    opened.on('all', (event, path) => {
      if (event === 'addDir' && folders.includes(path)) isReplaced = true;
      onChange();
    });
    // An error is reported, but must not prevent the start.
    await once(opened, 'ready').catch(() => undefined);
    return opened;
  }

  /**
   * When a folder is moved, or deleted and created again, chokidar does not report changes in the folder that took its
   * place, so a new watcher is needed.
   */
  async function watchAgain(wanted: readonly string[]): Promise<void> {
    if (!isReplaced && watcher !== undefined && isDeepStrictEqual(wanted, folders)) return;
    folders = wanted;
    names = new Set(folders.map((path) => basename(resolve(path))));
    // First, because watchers of the same path share what they know of it. The reading that follows misses no change.
    await watcher?.close();
    watcher = folders.length === 0 ? undefined : await open();
  }

  function poll(
    before: ReadonlySet<string>,
    wanted: ReadonlySet<string>,
    listener: typeof onLink,
  ): ReadonlySet<string> {
    for (const path of before) if (!wanted.has(path)) unwatchFile(path, listener);
    for (const path of wanted)
      if (!before.has(path)) watchFile(path, { interval: 20 * quietMs, persistent: false }, listener);
    return wanted;
  }

  /** A deployment may swap a link above a folder or a part of it, of which the folder emits no event. */
  function onLink(now: Stats, before: Stats): void {
    if (now.ino === before.ino && now.dev === before.dev) return;
    isReplaced = true;
    onChange();
  }

  function onFile(): void {
    onChange();
  }

  return Object.freeze({
    async refresh() {
      const wanted = await places();
      await watchAgain(wanted.folders);
      polledLinks = poll(polledLinks, new Set(wanted.links), onLink);
      polledFiles = poll(polledFiles, new Set(wanted.files), onFile);
    },
    async close() {
      poll(polledLinks, new Set(), onLink);
      poll(polledFiles, new Set(), onFile);
      await watcher?.close();
    },
  });
}

/** The delay is extended by further changes, but not beyond this many quiet periods. */
const quietPeriodsMax = 10;

export interface QuietTimer {
  /** Something has changed: runs when nothing has changed for a while. */
  readonly schedule: () => void;
  readonly cancel: () => void;
}

/** Waits with `run` until changes pause, because files may be written in parts. */
export function createQuietTimer(run: () => void, quietMs = quietMsDefault): QuietTimer {
  let timer: NodeJS.Timeout | undefined;
  let firstChangeMs: number | undefined;

  function cancel(): void {
    clearTimeout(timer);
    timer = undefined;
    firstChangeMs = undefined;
  }

  return Object.freeze({
    cancel,
    schedule() {
      const nowMs = performance.now();
      firstChangeMs ??= nowMs;
      if (timer !== undefined && nowMs - firstChangeMs > quietPeriodsMax * quietMs) return;
      clearTimeout(timer);
      timer = setTimeout(() => {
        cancel();
        run();
      }, quietMs);
    },
  });
}

/** How long changes have to pause. */
const quietMsDefault = 100;
