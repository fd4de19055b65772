/** What every module may use, and which knows none of them: loggers, lines about outages, a bounded map, text, sources. */
export { type BoundedMap, createBoundedMap } from './bounded-map.ts';
export { delayMsMax } from './delay.ts';
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
export { type Fields, isMap, sortedJson } from './plain-data.ts';
export { formatSource, type Source } from './source.ts';
export { hasControlCharacter, quoteShort, truncate } from './text.ts';
