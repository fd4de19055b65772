/** Responses that wait for their turn behind another one on a connection, and end with it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

const queuedKey = Symbol('queued responses');

interface Carrier extends Socket {
  [queuedKey]?: Set<ServerResponse>;
}

/**
 * With CONNECT or an upgrade behind them, Node lets go of the connection and forgets these responses: they would never
 * close, and what waits for that, such as the end of a call to a service, would wait for ever. Also in a host's server.
 */
export function closeWithConnection({ socket }: IncomingMessage, res: ServerResponse): void {
  // It has its turn, and Node closes it.
  if (res.socket !== null) return;
  const queued = queuedOn(socket);
  queued.add(res);
  res.once('close', () => queued.delete(res));
}

/** One listener for all, since a client may send many requests at once. */
function queuedOn(socket: Carrier): Set<ServerResponse> {
  const known = socket[queuedKey];
  if (known !== undefined) return known;
  const queued = new Set<ServerResponse>();
  socket[queuedKey] = queued;
  socket.once('close', () => {
    for (const res of queued) res.destroy();
  });
  return queued;
}
