/** A logger of a program that may fail: no line that it cannot write ends a request, or the process. */
import type { CountingLogger, LogLine } from './log.ts';

/**
 * The same logger. Where it throws, for example over a field that JSON cannot hold, it gets the message again with the
 * reason alone; a line that it cannot write then either is lost.
 */
export function createSafeLogger(logger: CountingLogger): CountingLogger {
  const { debug, isLevelEnabled, droppedLines, infoPlain, writeLine } = logger;
  // Looked up at each line: pino puts others in their place when its level changes.
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

/** A function that is async rejects later, and nothing else would handle that. */
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
