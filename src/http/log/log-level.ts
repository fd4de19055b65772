/** Restricts a logger to a level and those above it, whatever level the logger itself has. */
import type { CountingLogger } from './log.ts';

const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

/** The functions of `logger` must not need `this`. */
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
