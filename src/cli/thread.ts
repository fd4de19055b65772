/** The entry point of a thread that serves requests. Its log lines go to the main thread, in blocks. */
import module from 'node:module';
import { Writable } from 'node:stream';
import { isatty } from 'node:tty';
import { fileURLToPath } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import { messageOf } from '#foundation';
import type { ThreadStart } from '#server';
import { openLog, pendingBytesMaxDefault } from './log-output.ts';
import { keepTicksFast, releaseStartupMemory } from './v8-tuning.ts';

/** One after the other, because the collection needs a flag that all threads share. */
const releaseAfterMs = 10_000;
const releaseEveryMs = 500;

if (parentPort !== null) {
  // As in main.ts. Each thread has its own list of what it compiles.
  module.enableCompileCache(fileURLToPath(new URL('../../.cache', import.meta.url)));
  keepTicksFast();
  const { loadThread } = await import('#server');
  const { connectToMain, openThread } = await loadThread();
  const start: ThreadStart = workerData;
  const connection = connectToMain(parentPort);
  const { main } = connection;
  // Writes the next block when the reader has taken the last one, so that the bound of waiting lines holds.
  const output = new Writable({
    write: (block: Uint8Array, _encoding, done) => void main.call('write', block).then(() => done(), done),
  });
  const { logger, flush, writeBlock } = openLog(output, {
    level: start.settings.logLevel,
    base: null,
    isTerminal: isatty(1),
    pendingBytesMax: pendingBytesMaxDefault / start.count,
  });
  process.once('exit', writeBlock);
  try {
    await openThread(start, { ...connection, logger, flushLog: flush });
    setImmediate(module.flushCompileCache);
    releaseStartupMemory({ afterMs: releaseAfterMs + start.number * releaseEveryMs });
  } catch (error) {
    await main.call('failed', messageOf(error));
    process.exit(1);
  }
}
