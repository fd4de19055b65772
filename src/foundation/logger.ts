/** The logger's type, and loggers that wrap another one. */

/** A subset of pino's interface, so that a host application can pass in its own logger. */
export interface Logger {
  readonly info: LogLine;
  readonly warn: LogLine;
  readonly error: LogLine;
  /** Without it, nothing is logged at this level. */
  readonly debug?: LogLine;
  /** Without it, every level counts as enabled. */
  readonly isLevelEnabled?: (level: string) => boolean;
  /** A faster `info` for plain strings, numbers and booleans, used by the access log. Without it, `info` is used. */
  readonly infoPlain?: LogLine;
  /** Writes a line as it is instead of as JSON, for the access log. Without it, `info` logs the line as a message. */
  readonly writeLine?: (line: string) => void;
}

/**
 * The logger of the command line. Separate from `Logger`: for `createFrontdesk({ logger: pino() })`, TypeScript infers
 * pino's custom levels from the members of `Logger`, and `droppedLines` cannot be a level.
 */
export interface CountingLogger extends Logger {
  /** The number of lines that could not be written. Without it, none are lost. */
  readonly droppedLines?: () => number;
}

export type LogLine = (fields: object, message?: string) => void;

export const silentLogger: Logger = Object.freeze({
  info() {},
  warn() {},
  error() {},
  isLevelEnabled: () => false,
});

/**
 * A line that the logger fails to write must not break a request or the process. If the logger throws, for example
 * because a field cannot be serialised, the message is logged again with only the reason. If that fails too, the line is
 * lost.
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

const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

/** Restricts a logger to a level and those above it. The functions of `logger` must not need `this`. */
export function fromLevel(logger: CountingLogger, lowest: string): CountingLogger {
  const isOn = (level: string) => levels.indexOf(level) >= levels.indexOf(lowest);
  const { info, warn, error, debug, infoPlain, writeLine, ...rest } = logger;
  return Object.freeze({
    ...rest,
    info: isOn('info') ? info : ignore,
    warn: isOn('warn') ? warn : ignore,
    error: isOn('error') ? error : ignore,
    ...(debug && isOn('debug') && { debug }),
    ...(infoPlain && isOn('info') && { infoPlain }),
    ...(writeLine && isOn('info') && { writeLine }),
    isLevelEnabled: (level: string) => isOn(level) && logger.isLevelEnabled?.(level) !== false,
  });
}

function ignore(): void {}
