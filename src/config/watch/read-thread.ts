/** Entry of the thread that reads a large configuration directory: posts back the files that have changed, part by part. */
import { once } from 'node:events';
import { parentPort, workerData } from 'node:worker_threads';
import { readFiles } from '../load.ts';
import { splitReading } from './reading-parts.ts';
import type { ReadRequest } from './watch.ts';

if (parentPort !== null) {
  const { directory, known, ...options }: ReadRequest = workerData;
  for (const part of splitReading(await readFiles(directory, options, known))) {
    parentPort.postMessage(part);
    // Parts that wait in the port would all be received in one turn.
    if (!part.isLast) await once(parentPort, 'message');
  }
}
