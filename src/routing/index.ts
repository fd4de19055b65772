/** Which mapping a request meets, and what becomes of its path: pure arithmetic on text, without a socket. */
export type { RouteVerdict } from './explain.ts';
export { createRedirection, type Redirection } from './redirect.ts';
export { type PathRestoration, restoreCookie, restoreLocation } from './restore.ts';
export { createRewrite, type Rewrite, rewritePrefixes } from './rewrite.ts';
export type { PathRule, RequestAttributes, Rule } from './rule.ts';
export type { Match } from './shares.ts';
export { createTable, type Table } from './table.ts';
