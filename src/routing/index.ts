/** Which mapping a request meets, and what becomes of its path: pure arithmetic on text, without a socket. */
export type { Verdict } from './explain.ts';
export { createRedirection, type Redirection } from './redirect.ts';
export { type PathRestoration, restoreCookie, restoreLocation } from './restore.ts';
export { createRewrite, prefixesOf, type Rewrite } from './rewrite.ts';
export type { PathRule, RequestFacts, Rule } from './rule.ts';
export type { Match } from './shares.ts';
export { createTable, type Table } from './table.ts';
