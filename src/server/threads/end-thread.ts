/** Ends a thread, whatever it is doing. */
import type { Worker } from 'node:worker_threads';

const againMs = 500;

/** Node 26 now and then loses the order to end a thread that never pauses, so it is repeated until the thread has ended. */
export async function endThread(worker: Pick<Worker, 'terminate'>): Promise<void> {
  const timer = setInterval(() => void worker.terminate(), againMs);
  try {
    await worker.terminate();
  } finally {
    clearInterval(timer);
  }
}
