/** How long the body of a request may take to arrive, unless a stage takes it on under time-outs of its own. */
import type { IncomingMessage, Server } from 'node:http';

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

/** Decides by the headers alone. */
export function announcesBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}
