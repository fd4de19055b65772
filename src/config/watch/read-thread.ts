/** The entry point of the thread that reads a large directory. It posts the changed files back in parts. */
import { once } from 'node:events';
import { parentPort, workerData } from 'node:worker_threads';
import { readFiles } from '../load.ts';
import { type ReadRequest, splitReading } from './watch.ts';

if (parentPort !== null) {
  const { directory, known, ...options }: ReadRequest = workerData;
  for (const part of splitReading(await readFiles(directory, options, known))) {
    parentPort.postMessage(part);
    // Waits for the receiver, which would otherwise handle all queued parts in one turn of the event loop.
    if (!part.isLast) await once(parentPort, 'message');
  }
}
