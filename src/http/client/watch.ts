/** Watches the connection of a session: closes it when it is idle, and finds out with a PING whether the peer is gone. */
import type { ClientHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { Http2Error } from './errors.ts';

/** How often a session is checked, if its idle time is not shorter. */
const checkMs = 5_000;
/** How long a server may send nothing while it has requests before it gets a PING, and how long it has to reply. */
const silentMs = 10_000;
const pingMs = 10_000;
/** gRPC servers close a session that pings more often than every five minutes while they send nothing. */
const nextPingMs = 330_000;

export interface WatchedSession {
  readonly http2: ClientHttp2Session;
  readonly socket: Socket;
  readonly idleMs: number;
  readonly clock: () => number;
  readonly timer: (run: () => void, delayMs: number) => () => void;
  /** True while it has requests. */
  readonly isBusy: () => boolean;
  /** Since when it has none. */
  readonly idleSinceMs: () => number;
  readonly close: () => void;
  readonly destroy: (cause: Error) => void;
}

/** Returns a function that ends the watch. */
export function watchSession({ http2, socket, idleMs, clock, timer, ...session }: WatchedSession): () => void {
  /** What the server had sent when it was last seen to send something. */
  let bytes = -1;
  let pingAtMs = Number.POSITIVE_INFINITY;
  /** When the reply to a PING must be there. */
  let deadlineMs = Number.POSITIVE_INFINITY;
  let stop = () => {};

  function checkLater(): void {
    stop = timer(check, Math.max(10, Math.min(checkMs, idleMs)));
  }

  function check(): void {
    const nowMs = clock();
    checkLater();
    if (!session.isBusy()) checkIdle(nowMs);
    else if (socket.bytesRead === bytes) checkSilence(nowMs);
    else noteBytes(nowMs + silentMs);
  }

  function checkIdle(nowMs: number): void {
    // The socket of a closed session may wait for a peer that is gone.
    if (http2.closed) socket.destroy();
    else if (nowMs - session.idleSinceMs() >= idleMs) session.close();
    noteBytes(nowMs + silentMs);
  }

  function noteBytes(nextPingAtMs: number): void {
    bytes = socket.bytesRead;
    pingAtMs = nextPingAtMs;
    deadlineMs = Number.POSITIVE_INFINITY;
  }

  function checkSilence(nowMs: number): void {
    if (nowMs >= deadlineMs)
      session.destroy(new Http2Error('ETIMEDOUT', `the service did not reply to a PING within ${pingMs} ms`));
    else if (nowMs >= pingAtMs && deadlineMs === Number.POSITIVE_INFINITY) {
      deadlineMs = nowMs + pingMs;
      http2.ping((cause) => {
        if (cause === null) noteBytes(clock() + nextPingMs);
      });
    }
  }

  noteBytes(clock() + silentMs);
  checkLater();
  return () => stop();
}
