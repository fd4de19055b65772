/** Entry of the thread that reads a large configuration directory: posts back the files that have changed. */
import { parentPort, workerData } from 'node:worker_threads';
import { readFiles } from './load.ts';
import type { ReadRequest } from './watch.ts';

if (parentPort !== null) {
  const { directory, known, ...options }: ReadRequest = workerData;
  parentPort.postMessage(await readFiles(directory, options, known));
}
