/** Clients that ask and then take nothing of the answer: their connections end, and what was kept for them goes. */
import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

const latestKey = Symbol('latest');

interface Carrier {
  [latestKey]?: ServerResponse;
}

/** `idleTimeoutMs`: for how long a connection may neither take nor send anything while something waits to be taken; 0: without end. */
export function endUntaken(server: Server, idleTimeoutMs: number): void {
  server.prependListener('request', ({ socket }, res) => {
    (socket as Carrier)[latestKey] = res;
  });
  // Node tells of every connection at rest, and with a listener leaves it to that what becomes of those between two requests.
  server.setTimeout(idleTimeoutMs, (socket: Socket) => {
    const latest = (socket as Carrier)[latestKey];
    const isBetweenRequests = latest === undefined || latest.writableFinished;
    if (isBetweenRequests || socket.writableLength > 0) socket.destroy();
  });
}
