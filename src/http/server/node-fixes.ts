/** Fills gaps in Node's HTTP server: lazy `100 Continue`, a time-out for stalled responses, a hook before the head. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { ClientSocket } from './refused-request.ts';

/**
 * Sends `100 Continue` when the body is first read. Node would send it immediately (nodejs/node#20744, still so in
 * 26.10) and so invite a body that is then rejected because of its size, its sender or a limit. If it is never sent,
 * Node closes the connection after the response.
 */
export function sendContinueOnRead(server: Server): void {
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    continueOnRead(request, response);
    server.emit('request', request, response);
  });
  // Ignores unknown expectations, as RFC 9110 section 10.1.1 allows and nginx does. Node's own 417 has no body and
  // bypasses every stage.
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    delete request.headers.expect;
    server.emit('request', request, response);
  });
}

function continueOnRead(request: IncomingMessage, response: ServerResponse): void {
  const read = request._read;
  request._read = (size) => {
    request._read = read;
    // After the response, the body is read only to be discarded. A queued response is to a request without a body, and
    // Node would send its 100 after its head.
    if (!response.headersSent && response.socket !== null) response.writeContinue();
    read.call(request, size);
  };
}

/**
 * Closes the connection of a client that stops reading its response for this long. Node has no such time-out. 0
 * disables it. With a `timeout` listener, Node leaves all idle connections to it (see `server.setTimeout`), including
 * those between two requests.
 */
export function closeStalledResponses(server: Server, idleTimeoutMs: number): void {
  server.setTimeout(idleTimeoutMs, (socket: ClientSocket) => {
    const isBetweenRequests = !socket._httpMessage;
    if (isBetweenRequests || socket.writableLength > 0) socket.destroy();
  });
}

/**
 * Calls `write` once, right before the head is sent, when all other headers are final. This includes errors, 101, and
 * responses that bypass Koa, but not other interim responses (1xx). Node has no event for this; the npm package
 * on-headers works the same way.
 */
export function beforeHead(res: ServerResponse, write: (res: ServerResponse) => void): void {
  const { writeHead } = res;
  res.writeHead = function writeHeadLast(statusCode: number, ...rest: readonly unknown[]) {
    applyHeaders(res, rest.at(-1));
    res.writeHead = writeHead;
    write(res);
    const [message] = rest;
    const head = typeof message === 'string' ? [statusCode, message] : [statusCode];
    return writeHead.apply(res, head as [statusCode: number]);
  };
}

/** Applies the headers passed to `writeHead` as Node does: they replace existing ones, and a list may repeat a name. */
function applyHeaders(res: ServerResponse, headers: unknown): void {
  if (Array.isArray(headers)) {
    const names = headers.filter((_, index) => index % 2 === 0);
    for (const name of names) res.removeHeader(name);
    for (const [index, name] of names.entries()) res.appendHeader(name, headers[2 * index + 1]);
  } else if (typeof headers === 'object' && headers !== null) {
    for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
  }
}
