/** The entry point of a thread that serves requests. Its log lines go to the main thread, in blocks. */
import module from 'node:module';
import { isatty } from 'node:tty';
import { fileURLToPath } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import { messageOf } from '#foundation';
import type { ThreadConnection, ThreadStart } from '#server';
import { chooseLines } from './log/lines.ts';
import { type LogDestination, openLog, pendingBytesMaxDefault } from './log/output.ts';
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
  const output = createOutput(main);
  const { logLevel, accessLog } = start.settings;
  const isTerminal = isatty(1);
  const { logger, flush, writeBlock } = openLog(output, {
    level: logLevel,
    base: null,
    isTerminal,
    formatLine: chooseLines({ accessLog, isTerminal }),
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

/** Posts all lines at once, so that those of a thread that ends because of an error are not lost. */
function createOutput(main: ThreadConnection['main']): LogDestination {
  let waiting = 0;
  return {
    get writableLength() {
      return waiting;
    },
    write(lines, done) {
      const block = Buffer.from(lines);
      waiting += block.length;
      const settle = (error?: Error) => {
        waiting -= block.length;
        done(error);
      };
      main.call('write', block).then(() => settle(), settle);
    },
  };
}
