/** Bodies as they arrive: how long one may take, and how long a connection reads on over one that is refused. */
import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { beforeHead } from './node-fixes.ts';

const takenOnKey = Symbol('taken on');

interface Carrier {
  [takenOnKey]?: true;
}

/** For a stage that streams the body, which then may take as long as it flows. */
export function takeOnBodyTimeout(req: IncomingMessage): void {
  (req as Carrier)[takenOnKey] = true;
}

/** Node's own `requestTimeout` is the same for all requests. A late body is a `clientError` as Node has it. */
export function boundBodies(server: Server, timeoutMs: number): void {
  function onLate(req: IncomingMessage): void {
    if (req.complete || (req as Carrier)[takenOnKey] === true) return;
    const error = Object.assign(new Error('Request timeout'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
    server.emit('clientError', error, req.socket);
  }
  server.prependListener('request', (req) => {
    if (!announcesBody(req)) return;
    const timer = setTimeout(onLate, timeoutMs, req);
    req.once('close', () => clearTimeout(timer));
  });
}

/** As nginx has it (`lingering_time`, `lingering_timeout`). */
const lingerMs = 30_000;
const idleMs = 5_000;

/**
 * The connection ends with a response that comes before the end of the body: some clients send no more of it and go on with
 * the next request, as HAProxy does for a client of HTTP/2, which would be read as the rest of the body. It reads on for a
 * while: unread bytes would reset it, and the reset can overtake the response.
 */
export function lingerOverBodies(server: Server): void {
  server.prependListener('request', (req, res) => {
    // Also one with `Expect: 100-continue`: a client need not wait for it (RFC 9110 section 10.1.1), and Caddy does not.
    if (!announcesBody(req)) return;
    beforeHead(res, () => {
      if (!req.complete) res.shouldKeepAlive = false;
    });
    res.once('prefinish', () => void (!req.complete && linger(req)));
  });
}

/** Resolves when the parser has read a body that arrived with the head: a refusal need not end the connection then. */
export async function bodyOfHead(req: IncomingMessage): Promise<void> {
  if (!req.complete && announcesBody(req)) await setImmediate();
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

/** Decides by the headers alone. */
export function announcesBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}
