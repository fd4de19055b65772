/** Closes requests and queued responses with their connection, and the connection in the turn of a cut-off response. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { announcesBody } from './request-bodies.ts';

const openKey = Symbol('open requests and queued responses');

interface Carrier extends Socket {
  [openKey]?: Set<IncomingMessage | ServerResponse>;
}

/**
 * Node forgets two things when a connection closes: a request whose response ended before its body, and a queued
 * response that CONNECT or an upgrade follows. Neither would ever emit `close`, and what waits for it (a time-out, a copy
 * of the body, a call to a service) would never end. Works in a host application's server too.
 */
export function closeWithConnection(req: IncomingMessage, res: ServerResponse): void {
  if (announcesBody(req)) closeLater(req.socket, req);
  // This response is not queued, so Node closes it.
  if (res.socket !== null) return;
  closeLater(req.socket, res);
  // Node gives even a response that was cut off its turn, and then waits for the rest of it.
  res.once('socket', (connection: Socket) => void (res.destroyed && connection.destroy()));
}

/** Uses one listener per connection, because a client may pipeline many requests. */
function closeLater(socket: Carrier, message: IncomingMessage | ServerResponse): void {
  const open = openOn(socket);
  open.add(message);
  message.once('close', () => open.delete(message));
}

function openOn(socket: Carrier): Set<IncomingMessage | ServerResponse> {
  const known = socket[openKey];
  if (known !== undefined) return known;
  const open = new Set<IncomingMessage | ServerResponse>();
  socket[openKey] = open;
  socket.once('close', () => {
    for (const message of open) message.destroy();
  });
  return open;
}
