/** Routing: finds the mapping of a request and rewrites its path. Pure functions without I/O. */
export type { RequestAttributes, Rule } from './conditions.ts';
export type { Match } from './groups.ts';
export { createLenientTables, createLenientTablesInTurns, type LenientTables } from './lenient-tables.ts';
export { createReadings, foldLetters, type ReadingsOf, severalReadings } from './path-readings.ts';
export {
  editReferences,
  type PathRestoration,
  type Reference,
  type ReferenceBase,
  readReference,
  resourceElsewhere,
  restoreCookie,
  restoreHeader,
} from './references.ts';
export { createRedirection, createRewrite, keepsPath, type PathRule, rewritePrefixes } from './rewrite.ts';
export { createTable, createTableInTurns, firstShare, type Table } from './table.ts';
export { describeConditions, type ListedRoute, listRoutes, type RouteVerdict } from './verdicts.ts';
