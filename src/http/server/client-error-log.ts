/** Logs input that could not be parsed as a request: its source, the error and, if available, the request line. */
import type { Logger } from '../log/log.ts';
import { type LogClientError, requestLineOf } from './refused-request.ts';

/** At most one line per interval, because anyone can send garbage at the full speed of the network. */
const intervalMs = 1000;

/** Logs the first error immediately, then the first of each second with the number of others that were left out. */
export function createClientErrorLog(logger: Pick<Logger, 'warn'>): LogClientError {
  let isThrottled = false;
  let leftOut = 0;
  let pending: object = {};

  function write(fields: object): void {
    logger.warn(fields, 'a client sent something that is not a valid HTTP request');
    isThrottled = true;
    setTimeout(flush, intervalMs).unref();
  }

  function flush(): void {
    isThrottled = false;
    if (leftOut === 0) return;
    const fields = leftOut === 1 ? pending : { ...pending, leftOut: leftOut - 1 };
    leftOut = 0;
    write(fields);
  }

  return function logClientError(error, socket, status) {
    // Ignores connections without data: browsers open them ahead of time, and load balancers for TCP health checks.
    if (socket.bytesRead === 0) return;
    if (isThrottled && leftOut > 0) {
      leftOut += 1;
      return;
    }
    const { code, reason = error.message } = error;
    const fields = { client: socket.remoteAddress, status, code, reason, ...requestLineOf(error, socket) };
    if (!isThrottled) return write(fields);
    pending = fields;
    leftOut = 1;
  };
}
