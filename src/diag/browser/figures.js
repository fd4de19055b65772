/** What changes on the page while nobody touches it: row by row, by the name of a cell, its text. */
import { shown } from './shown.js';
import { countFigure, errorFigure, pictureFigures, sumOf, trafficFigures } from './traffic-figures.js';
import { isUnwell } from './verdict.js';
import { countText, rateText, shareText, spanText } from './words.js';

/** @typedef {import('../diagnostics.ts').Diagnostics} Diagnostics */
/** @typedef {import('../diagnostics-traffic.ts').RecentRow} RecentRow */
/** @typedef {import('../diagnostics.ts').RouteRow} RouteRow */
/** @typedef {import('../diagnostics.ts').ClusterRow} ClusterRow */
/** @typedef {import('../diagnostics.ts').LimitRow} LimitRow */
/** @typedef {import('../diagnostics.ts').FailureRow} FailureRow */

/** @typedef {import('./traffic-figures.js').Figure} Figure */
/** @typedef {import('./traffic-figures.js').Figures} Figures */

/**
 * The rows of each part of the page, in the page's order.
 * @param {Diagnostics} diagnostics
 * @returns {Readonly<Record<'facts' | 'routes' | 'clusters' | 'limits' | 'failures', readonly Figures[]>>}
 */
export function figuresOf(diagnostics) {
  const { routes, unmatched, clusters, limits, failures } = diagnostics;
  return {
    facts: [summaryFigures(diagnostics)],
    routes: [...shown(routes).map(routeFigures), trafficFigures(unmatched)],
    clusters: shown(clusters).map(clusterFigures),
    limits: shown(limits).map(limitFigures),
    failures: failures.map(failureFigures),
  };
}

/**
 * @param {Diagnostics} diagnostics
 * @returns {Figures}
 */
export function summaryFigures({ routes, unmatched, uptime_seconds, auth, ratelimit }) {
  // Routes of one name, as those of the API's versions, share their figures.
  const byName = new Map(routes.map(({ name, traffic }) => [name, traffic]));
  const traffics = [...byName.values(), unmatched];
  const recents = traffics.flatMap(({ recent }) => recent ?? []);
  const requests = sumOf(recents.map((recent) => sumOf(recent.requests)));
  const errors = sumOf(recents.map((recent) => sumOf(recent.errors)));
  return {
    uptime: { text: spanText(uptime_seconds) },
    rate: { text: rateText(sumOf(recents.map(({ requests_per_second }) => requests_per_second))) },
    errors: errorFigure(requests === 0 ? 0 : errors / requests),
    in_flight: { text: countText(sumOf(traffics.map(({ in_flight }) => in_flight))) },
    ...pictureFigures(slotSums(recents, 'requests'), slotSums(recents, 'errors'), recents[0]?.slot_seconds ?? 5),
    auth_allowed: countFigure(auth?.allowed),
    auth_denied: countFigure(auth?.denied),
    auth_error: countFigure(auth?.error, 'watch'),
    limit_ok: countFigure(ratelimit?.ok),
    limit_over: countFigure(ratelimit?.over),
    limit_error: countFigure(ratelimit?.error, 'watch'),
  };
}

/**
 * @param {RouteRow} route
 * @returns {Figures}
 */
export function routeFigures({ health, traffic }) {
  const state = { ok: 'well', degraded: 'watch', failing: 'ill', unknown: 'none' }[health];
  return { health: { text: health === 'unknown' ? 'no requests' : health, state }, ...trafficFigures(traffic) };
}

/**
 * @param {ClusterRow} cluster
 * @returns {Figures}
 */
export function clusterFigures({ circuit, active_requests, overflows, addresses }) {
  /** @type {[string, Figure][]} */
  const each = addresses.flatMap(({ health, active_requests: active }, index) => [
    [`health_${index}`, { text: health, state: isUnwell(health) ? 'ill' : health === 'healthy' ? 'well' : 'none' }],
    [`active_${index}`, countFigure(active)],
  ]);
  return {
    circuit: { text: circuit, state: circuit === 'open' ? 'ill' : 'well' },
    active: countFigure(active_requests),
    overflows: countFigure(overflows, 'watch'),
    ...Object.fromEntries(each),
  };
}

/**
 * @param {LimitRow} limit
 * @returns {Figures}
 */
export function limitFigures({ hits, over, fullness }) {
  const state = fullness === undefined ? 'none' : fullness >= 1 ? 'watch' : 'well';
  return {
    full: { text: fullness === undefined ? 'not counted here' : `${shareText(Math.min(fullness, 1))} full`, state },
    bar: { text: String(Math.round(Math.min(fullness ?? 0, 1) * 100)), state },
    hits: countFigure(hits),
    over: countFigure(over, 'watch'),
  };
}

/**
 * @param {FailureRow} failure
 * @returns {Figures}
 */
export function failureFigures({ at, request_id, method, path, mapping, status, problem, reason }) {
  return {
    at: { text: at },
    status: { text: String(status), state: 'ill' },
    method: { text: method },
    path: { text: path },
    mapping: { text: mapping ?? 'no route' },
    problem: { text: problem ?? '', href: problem === undefined ? '' : `../problems/${encodeURIComponent(problem)}` },
    reason: { text: reason ?? (problem === undefined ? 'the service itself said so' : '') },
    request_id: { text: request_id },
  };
}

/**
 * @param {readonly RecentRow[]} recents
 * @param {'requests' | 'errors'} name
 */
function slotSums(recents, name) {
  const sums = new Array(recents[0]?.[name].length ?? 0).fill(0);
  for (const recent of recents) for (const [index, count] of recent[name].entries()) sums[index] += count;
  return sums;
}
