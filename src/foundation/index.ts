/** What every module may use, and which knows none of them: loggers, lines about outages, and a bounded map. */
export { type BoundedMap, createBoundedMap } from './bounded-map.ts';
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
