/** What every module may use, and which knows none of them: loggers, bounded maps, plain data, text, errors. */
export { type BoundedMap, createBoundedMap } from './bounded-map.ts';
export { bytesFromText, decodeByte, hexOfCharacter, isAscii, textFromBytes } from './byte-text.ts';
export { createTurns, delayMsMax, type InTurn } from './delay.ts';
export { equalPart } from './equal-part.ts';
export { codeOf, messageOf } from './errors.ts';
export { inheritOwner, makeFolders } from './folders.ts';
export { describeIssue, statementOf, type TypeNames } from './issues.ts';
export { listenError } from './listen-error.ts';
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
export { isOwnAddress, peerOf, usualAddress } from './peer.ts';
export { type Fields, isMap, sortedJson } from './plain-data.ts';
export { type ProtobufField, protobufContent, protobufFields, protobufNumber } from './protobuf.ts';
export { formatSource, type Source } from './source.ts';
export { escapeForTerminal, hasControlCharacter, quoteShort, shellWord, truncate } from './text.ts';
