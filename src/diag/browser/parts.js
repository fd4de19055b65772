/** Describes the content of each part of the page, from the diagnostics. */
import { endedThreads, errorList, noticeList, tiles, unreadList } from './health.js';
import { routeCount, routeTables, versionTable } from './routes.js';
import {
  certificateTable,
  clusterTable,
  failureTable,
  limitTable,
  serviceTable,
  tokenProviderTable,
  unmatchedTable,
} from './tables.js';

/**
 * @param {import('../diagnostics.ts').Diagnostics} diagnostics
 * @param {string} typed hides the routes that do not contain this text, in lower case
 */
export function partsOf(diagnostics, typed) {
  return {
    errors: [unreadList(diagnostics), errorList(diagnostics), endedThreads(diagnostics), noticeList(diagnostics)],
    summary: tiles(diagnostics),
    count: routeCount(diagnostics, typed),
    routes: [routeTables(diagnostics, typed), versionTable(diagnostics)],
    targets: [
      clusterTable(diagnostics),
      serviceTable(diagnostics),
      tokenProviderTable(diagnostics),
      certificateTable(diagnostics),
    ],
    limits: limitTable(diagnostics),
    unmatched: unmatchedTable(diagnostics),
    failures: failureTable(diagnostics),
  };
}
