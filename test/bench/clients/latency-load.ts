/** Generates load from a separate process as `http-load.ts`, over any number of connections, and counts the latencies. */
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LoadOrder } from '../measurements/samples.ts';
import { openConnection } from './http-connection.ts';
import { createLatencies } from './latencies.ts';

export interface LatencyLoadOrder extends LoadOrder {
  readonly connections: number;
  /** The whole request as text. */
  readonly request: string;
}

/** Sent after `durationMs`, when all connections are closed. */
export interface LatencyReport {
  readonly requests: number;
  /** The latencies by bucket. */
  readonly counts: readonly number[];
  /** How often a request failed, by the reason. */
  readonly failures: readonly (readonly [string, number])[];
}

/** A server accepts this many at once, whatever its backlog is. */
const openedTogether = 50;
const pauseMs = 10;
const lastResponsesMs = 2000;

async function run({ port, connections, request, warmUpMs, durationMs }: LatencyLoadOrder): Promise<LatencyReport> {
  const bytes = Buffer.from(request, 'latin1');
  const latencies = createLatencies();
  const failures = new Map<string, number>();
  const open = new Set<Socket>();
  let [requests, isStopped] = [0, false];

  function openOne(): void {
    let sentAtMs = 0;
    let failure = 'connection closed';
    const socket = openConnection(port, {
      statusLine: /^HTTP\/1\.1 200 /,
      next() {
        sentAtMs = performance.now();
        return isStopped ? undefined : bytes;
      },
      onResponse() {
        requests += 1;
        latencies.record(performance.now() - sentAtMs);
      },
      onFailure(error) {
        failure = error.message.split('\r\n')[0] ?? '';
      },
      onClose() {
        open.delete(socket);
        if (isStopped) return;
        failures.set(failure, (failures.get(failure) ?? 0) + 1);
        setTimeout(openOne, pauseMs);
      },
    });
    open.add(socket);
  }

  for (let count = 0; count < connections; count += 1) {
    openOne();
    if (count % openedTogether === openedTogether - 1) await sleep(pauseMs);
  }
  await sleep(warmUpMs);
  requests = 0;
  latencies.clear();
  failures.clear();
  await sleep(durationMs);
  const report = { requests, counts: latencies.counts(), failures: [...failures] };
  isStopped = true;
  // Open requests end, because one that is cut off costs the server more than a complete one.
  for (let wait = 0; open.size > 0 && wait < lastResponsesMs; wait += pauseMs) await sleep(pauseMs);
  for (const socket of open) socket.destroy();
  return report;
}

process.on('message', async (order: LatencyLoadOrder) => {
  process.send?.(await run(order));
});
