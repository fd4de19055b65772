/** Responses that wait for their turn on a connection: a client need not wait for one answer before it asks again. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

const waitingKey = Symbol('waiting');

interface Carrier {
  [waitingKey]?: Set<ServerResponse>;
}

/**
 * When the connection closes, so does a response that never had its turn: Node forgets these, and what was under way for
 * them would go on with nobody to take it.
 */
export function closeWithConnection(socket: Socket, res: ServerResponse): void {
  if (res.socket !== null) return;
  const waiting = waitingOn(socket);
  waiting.add(res);
  res.once('socket', () => waiting.delete(res));
}

/** One listener on the connection, however many wait. */
function waitingOn(socket: Socket): Set<ServerResponse> {
  const carrier = socket as Carrier;
  const present = carrier[waitingKey];
  if (present !== undefined) return present;
  const waiting = new Set<ServerResponse>();
  carrier[waitingKey] = waiting;
  socket.once('close', () => {
    for (const res of waiting) closeOn(socket, res);
  });
  return waiting;
}

/** With the connection, Koa sees that there is nobody to write to. */
function closeOn(socket: Socket, res: ServerResponse): void {
  Object.assign(res, { socket }).destroy();
  res.emit('close');
}
