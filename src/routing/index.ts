/** Routing: finds the mapping of a request and rewrites its path. Pure functions without I/O. */
export type { Match } from './groups.ts';
export { type PathRestoration, restoreCookie, restoreLocation } from './restore.ts';
export { createRedirection, createRewrite, rewritePrefixes } from './rewrite.ts';
export type { PathRule, RequestAttributes, Rule } from './rule.ts';
export { createTable, firstShare, type Table } from './table.ts';
export { describeConditions, listRoutes, listVersions, type RouteVerdict } from './verdicts.ts';
export { editReferences, type ReferenceBase, readReference } from './webdav-references.ts';
