/** Log lines about bytes that never became a request: where they came from, what was wrong, and the request line. */
import type { Logger } from '../log/log.ts';
import { type LogClientError, requestLineOf } from './refused-request.ts';

/** Anybody can send garbage as fast as the network takes it. */
const everyMs = 1000;

/** One line a second: the first error at once, then the first of each second with how many others are left out. */
export function createClientErrorLog(logger: Pick<Logger, 'warn'>): LogClientError {
  let isResting = false;
  let leftOut = 0;
  let held: object = {};

  function write(fields: object): void {
    logger.warn(fields, 'what a client sent is no request');
    isResting = true;
    setTimeout(goOn, everyMs).unref();
  }

  function goOn(): void {
    isResting = false;
    if (leftOut === 0) return;
    const fields = leftOut === 1 ? held : { ...held, leftOut: leftOut - 1 };
    leftOut = 0;
    write(fields);
  }

  return function logClientError(error, socket, status) {
    // A connection that was only opened, as browsers do ahead of time, and load balancers to see whether a port is open.
    if (socket.bytesRead === 0) return;
    if (isResting && leftOut > 0) {
      leftOut += 1;
      return;
    }
    const { code, reason = error.message } = error;
    const fields = { client: socket.remoteAddress, status, code, reason, ...requestLineOf(error, socket) };
    if (!isResting) return write(fields);
    held = fields;
    leftOut = 1;
  };
}
