/** What we ask of a logger: pino's shape, so that a host hands in its own. */

export interface Logger {
  readonly info: LogLine;
  readonly warn: LogLine;
  readonly error: LogLine;
  /** Absent: nothing of that level is logged. */
  readonly debug?: LogLine;
  /** Absent: every level is taken to be on. */
  readonly isLevelEnabled?: (level: string) => boolean;
}

type LogLine = (fields: object, message?: string) => void;

export const silentLogger: Logger = Object.freeze({
  info() {},
  warn() {},
  error() {},
  isLevelEnabled: () => false,
});
