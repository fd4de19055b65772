/** Closes queued pipelined responses with their connection, and the connection in turn of one that was cut off. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

const queuedKey = Symbol('queued responses');

interface Carrier extends Socket {
  [queuedKey]?: Set<ServerResponse>;
}

/**
 * Destroys a queued response when its connection closes. If CONNECT or an upgrade follows it, Node detaches the
 * connection and forgets the response: it would never emit `close`, and a call to a service that waits for it would
 * never end. Works in a host application's server too.
 */
export function closeWithConnection({ socket }: IncomingMessage, res: ServerResponse): void {
  // This response is not queued, so Node closes it.
  if (res.socket !== null) return;
  const queued = queuedOn(socket);
  queued.add(res);
  res.once('close', () => queued.delete(res));
  // Node gives even a response that was cut off its turn, and then waits for the rest of it.
  res.once('socket', (connection: Socket) => void (res.destroyed && connection.destroy()));
}

/** Uses one listener per connection, because a client may pipeline many requests. */
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
