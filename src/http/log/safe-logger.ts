/** Wraps a logger so that a line that it fails to write cannot break a request or crash the process. */
import type { CountingLogger, LogLine } from './log.ts';

/**
 * If the logger throws, for example because a field cannot be serialised, the message is logged again with only the
 * reason. If that fails too, the line is lost.
 */
export function createSafeLogger(logger: CountingLogger): CountingLogger {
  const { debug, isLevelEnabled, droppedLines, infoPlain, writeLine } = logger;
  // Looks the methods up for every line, because pino replaces them when its level changes.
  return Object.freeze({
    info: safe((fields, message) => logger.info(fields, message)),
    warn: safe((fields, message) => logger.warn(fields, message)),
    error: safe((fields, message) => logger.error(fields, message)),
    ...(debug && { debug: safe((fields, message) => logger.debug?.(fields, message)) }),
    ...(isLevelEnabled && { isLevelEnabled: isLevelEnabled.bind(logger) }),
    ...(droppedLines && { droppedLines: droppedLines.bind(logger) }),
    ...(infoPlain && { infoPlain: safe(infoPlain.bind(logger)) }),
    ...(writeLine && { writeLine: writeLine.bind(logger) }),
  });
}

/** Handles the rejections of an asynchronous logger too, because nothing else would. */
function safe(write: (...line: Parameters<LogLine>) => unknown): LogLine {
  function writeReason(thrown: unknown, message?: string): void {
    const loggerFailed = thrown instanceof Error ? thrown.message : typeof thrown;
    try {
      const written = write({ loggerFailed }, message);
      if (written instanceof Promise) written.catch(() => {});
    } catch {}
  }

  return (fields, message) => {
    try {
      const written = write(fields, message);
      if (written instanceof Promise) written.catch((thrown) => writeReason(thrown, message));
    } catch (thrown) {
      writeReason(thrown, message);
    }
  };
}
