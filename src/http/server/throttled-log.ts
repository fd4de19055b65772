/** Logs what anyone can cause at the full speed of the network: at most one line a second. */
import type { Logger } from '#foundation';

const intervalMs = 1000;

/**
 * Returns a function that logs the first call immediately, then the first of each second with the number of others that
 * were left out. `fieldsOf` is not called for those.
 */
export function createThrottledLog(logger: Pick<Logger, 'warn'>, message: string): (fieldsOf: () => object) => void {
  let isThrottled = false;
  let leftOut = 0;
  let pending: object = {};

  function write(fields: object): void {
    logger.warn(fields, message);
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

  return function logThrottled(fieldsOf) {
    if (!isThrottled) return write(fieldsOf());
    if (leftOut === 0) pending = fieldsOf();
    leftOut += 1;
  };
}
