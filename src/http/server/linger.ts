/** A connection that closes over an unfinished request reads on for a while: unread bytes would reset it, and the reset can overtake the response. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { announcesBody } from './request-timeout.ts';

/** As nginx has it (`lingering_time`, `lingering_timeout`). */
const lingerMs = 30_000;
const idleMs = 5_000;

export function lingerOverBodies(server: Server): void {
  server.prependListener('request', (req, res) => {
    if (announcesBody(req)) res.once('prefinish', () => void (isComing(req, res) && linger(req)));
  });
}

/** A client that waits for `100 Continue` sends nothing without it. `_sent100` is Node's own. */
function isComing(req: IncomingMessage, res: ServerResponse & { readonly _sent100?: boolean }): boolean {
  return !req.complete && (req.headers.expect === undefined || res._sent100 === true);
}

/** Node calls `destroySoon` after the last response of a connection. */
function linger(req: IncomingMessage): void {
  const socket: Socket = req.socket;
  socket.destroySoon = () => {
    const deadline = setTimeout(() => socket.destroy(), lingerMs);
    socket.once('close', () => clearTimeout(deadline));
    socket.setTimeout(idleMs);
    socket.end();
    req.once('end', () => socket.destroy()).resume();
  };
}
