/** What Node's server does not do by itself: 100 Continue on read, an end for idle answers, a hook right before the head. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Sends `100 Continue` when the body is first read. Node would send it at once (nodejs/node#20744, so on 26.10 too), and
 * a body that is refused for its size, its sender or a limit would come all the same. Unsent, Node closes the connection
 * after the response.
 */
export function inviteBodies(server: Server): void {
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    inviteOnRead(request, response);
    server.emit('request', request, response);
  });
  // Served like any other (RFC 9110 section 10.1.1, nginx): Node's 417 has no body, and passes every stage by.
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    delete request.headers.expect;
    server.emit('request', request, response);
  });
}

function inviteOnRead(request: IncomingMessage, response: ServerResponse): void {
  const read = request._read;
  request._read = (size) => {
    request._read = read;
    // After the response a body is only read to be dropped.
    if (!response.headersSent) response.writeContinue();
    read.call(request, size);
  };
}

const latestKey = Symbol('latest response');

interface Carrier {
  [latestKey]?: ServerResponse;
}

/**
 * Ends the connection of a client that takes nothing of its response for so long, for which Node has no time-out; 0:
 * never. With a listener for `timeout`, Node leaves every idle connection to it (docs, `server.setTimeout`), also those
 * between two requests.
 */
export function endIdleAnswers(server: Server, idleTimeoutMs: number): void {
  server.prependListener('request', ({ socket }, res) => {
    (socket as Carrier)[latestKey] = res;
  });
  server.setTimeout(idleTimeoutMs, (socket: Socket) => {
    const latest = (socket as Carrier)[latestKey];
    const isBetweenRequests = latest === undefined || latest.writableFinished;
    if (isBetweenRequests || socket.writableLength > 0) socket.destroy();
  });
}

/**
 * Calls `write` once, right before the head is sent, when all other headers are final: also those of an error, of a 101,
 * and of a response that does not pass through Koa. Interim responses (1xx) do not count. Node has no event for this; the
 * npm package on-headers does the same.
 */
export function beforeHead(res: ServerResponse, write: (res: ServerResponse) => void): void {
  const { writeHead } = res;
  res.writeHead = function writeHeadLast(statusCode: number, ...rest: readonly unknown[]) {
    takeHeaders(res, rest.at(-1));
    res.writeHead = writeHead;
    write(res);
    const [message] = rest;
    const head = typeof message === 'string' ? [statusCode, message] : [statusCode];
    return writeHead.apply(res, head as [statusCode: number]);
  };
}

/** Sets the headers that `writeHead` was called with as Node would: they replace others, and a list may repeat a name. */
function takeHeaders(res: ServerResponse, headers: unknown): void {
  if (Array.isArray(headers)) {
    const names = headers.filter((_, index) => index % 2 === 0);
    for (const name of names) res.removeHeader(name);
    for (const [index, name] of names.entries()) res.appendHeader(name, headers[2 * index + 1]);
  } else if (typeof headers === 'object' && headers !== null) {
    for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
  }
}
