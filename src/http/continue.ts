/** Bodies that are announced with `Expect: 100-continue`: the client is told to go on when somebody wants to read, not before. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';

/**
 * Node would say it at once. A body that is refused for its size, its sender or his limits is never sent then, and its
 * connection is closed after the answer, as Node does where it has not said so.
 */
export function inviteBodies(server: Server): void {
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    inviteOnRead(request, response);
    server.emit('request', request, response);
  });
}

function inviteOnRead(request: IncomingMessage, response: ServerResponse): void {
  const read = request._read;
  request._read = (size) => {
    request._read = read;
    // After the answer only what nobody wants is read, to be dropped.
    if (!response.headersSent) response.writeContinue();
    read.call(request, size);
  };
}
