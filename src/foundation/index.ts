/** What every module may use, and which knows none of them: loggers and lines about outages. */
export {
  type CountingLogger,
  createSafeLogger,
  fromLevel,
  type Logger,
  silentLogger,
} from './logger.ts';
export {
  createOncePerMinute,
  createOutageLog,
  createOutageLogs,
  type OutageLog,
  type OutageLogs,
} from './outage-log.ts';
