/** Time limit of request bodies, and lingering close after a response that was sent before the end of a body. */
import type { IncomingMessage, RequestListener, Server } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { beforeHead } from './node-fixes.ts';

const noTimeoutKey = Symbol('no body time-out');

interface Carrier {
  [noTimeoutKey]?: true;
}

/** Call it before streaming the body with an idle time-out of your own: its total duration is then unlimited. */
export function disableBodyTimeout(req: IncomingMessage): void {
  (req as Carrier)[noTimeoutKey] = true;
}

/**
 * Limits the time for a body like Node's `requestTimeout`, but lets requests opt out. The time starts with the call of
 * the handler, because the body of a pipelined request is not read before its turn. Emits the same `clientError`.
 */
export function limitBodyTime(server: Server, handler: RequestListener, timeoutMs: number): RequestListener {
  function onLate(req: IncomingMessage): void {
    if (req.complete || (req as Carrier)[noTimeoutKey] === true) return;
    const error = Object.assign(new Error('Request timeout'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
    server.emit('clientError', error, req.socket);
  }
  return (req, res) => {
    if (announcesBody(req)) {
      const timer = setTimeout(onLate, timeoutMs, req);
      req.once('close', () => clearTimeout(timer));
    }
    handler(req, res);
  };
}

/** The defaults of nginx: `lingering_time` and `lingering_timeout`. */
const lingerMs = 30_000;
const lingerIdleMs = 5_000;

/**
 * Closes the connection after a response that is sent before the end of the request body. Some clients then skip the
 * rest of the body and send the next request, as HAProxy does for HTTP/2 clients, and it would be parsed as body. Reads
 * and discards data for a while before closing: with unread bytes, closing resets the connection, and the reset can
 * overtake the response.
 */
export function lingerAfterEarlyResponses(server: Server): void {
  server.prependListener('request', (req, res) => {
    // Includes requests with `Expect: 100-continue`: a client need not wait for the 100 (RFC 9110 section 10.1.1), and
    // Caddy does not.
    if (!announcesBody(req)) return;
    beforeHead(res, () => {
      if (!req.complete) res.shouldKeepAlive = false;
    });
    res.once('prefinish', () => void (!req.complete && linger(req)));
  });
}

/** Lets the parser finish a body that arrived with the head, so that a rejection can keep the connection open. */
export async function parseBufferedBody(req: IncomingMessage): Promise<void> {
  if (!req.complete && announcesBody(req)) await setImmediate();
}

/** Overrides `destroySoon`, which Node calls after the last response of a connection. */
function linger(req: IncomingMessage): void {
  const socket: Socket = req.socket;
  socket.destroySoon = () => {
    const deadline = setTimeout(() => socket.destroy(), lingerMs);
    socket.once('close', () => clearTimeout(deadline));
    socket.setTimeout(lingerIdleMs);
    socket.end();
    req.once('end', () => socket.destroy()).resume();
  };
}

/** Looks only at the headers. */
export function announcesBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}
