/** Computes the figures of each cell, and a digest of everything else in a part of the page. Shared with the server. */
import {
  areaPoints,
  chartMaxOf,
  countText,
  durationText,
  rateText,
  shareText,
  spanText,
  visibleRows,
} from './format.js';
import { isUnhealthy } from './verdict.js';

/** @typedef {import('../diagnostics.ts').Diagnostics} Diagnostics */
/** @typedef {import('../diagnostics.ts').RecentRow} RecentRow */
/** @typedef {import('../diagnostics.ts').RouteRow} RouteRow */
/** @typedef {import('../diagnostics.ts').ClusterRow} ClusterRow */
/** @typedef {import('../diagnostics.ts').LimitRow} LimitRow */
/** @typedef {import('../diagnostics.ts').FailureRow} FailureRow */
/** @typedef {import('../diagnostics.ts').UnmatchedRow} UnmatchedRow */

/**
 * The figures of each row, by part of the page and in the order of the page.
 * @param {Diagnostics} diagnostics
 * @returns {Readonly<Record<'summary' | 'routes' | 'clusters' | 'limits' | 'unmatched' | 'failures', readonly Figures[]>>}
 */
export function figuresOf(diagnostics) {
  const { routes, unmatched, unmatched_requests, clusters, limits, failures } = diagnostics;
  const { configured, builtIn } = groupedRoutes(routes);
  return {
    summary: [summaryFigures(diagnostics)],
    routes: [...configured.map(routeFigures), trafficFigures(unmatched), ...builtIn.map(routeFigures)],
    clusters: visibleRows(clusters).map(clusterFigures),
    limits: visibleRows(limits).map(limitFigures),
    unmatched: unmatched_requests.map(unmatchedFigures),
    failures: failures.map(failureFigures),
  };
}

/**
 * Separates the routes that records define from the built-in ones. Omits rows that are not shown.
 * @param {readonly RouteRow[]} routes
 */
export function groupedRoutes(routes) {
  const rows = visibleRows(routes);
  return { configured: rows.filter(({ internal }) => !internal), builtIn: rows.filter(({ internal }) => internal) };
}

/**
 * @param {Diagnostics} diagnostics
 * @returns {Figures}
 */
export function summaryFigures({ routes, unmatched, uptime_seconds, auth, ratelimit }) {
  // Routes of the same name share their counts.
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
    ...sparklineFigures(slotSums(recents, 'requests'), slotSums(recents, 'errors'), recents[0]?.slot_seconds ?? 5),
    auth_allowed: countFigure(auth?.allowed),
    auth_denied: countFigure(auth?.denied),
    auth_error: countFigure(auth?.error, 'warning'),
    limit_ok: countFigure(ratelimit?.ok),
    limit_over: countFigure(ratelimit?.over),
    limit_error: countFigure(ratelimit?.error, 'warning'),
  };
}

/**
 * @param {RouteRow} route
 * @returns {Figures}
 */
export function routeFigures({ health, traffic }) {
  const state = { ok: 'ok', degraded: 'warning', failing: 'error', unknown: 'none' }[health];
  return { health: { text: health === 'unknown' ? 'no requests' : health, state }, ...trafficFigures(traffic) };
}

/**
 * @param {ClusterRow} cluster
 * @returns {Figures}
 */
export function clusterFigures({ circuit, active_requests, active_upgrades, overflows, addresses }) {
  /** @type {[string, Figure][]} */
  const each = addresses.flatMap(({ health, active_requests: active }, index) => [
    [`health_${index}`, { text: health, state: isUnhealthy(health) ? 'error' : health === 'healthy' ? 'ok' : 'none' }],
    [`active_${index}`, countFigure(active)],
  ]);
  return {
    circuit: { text: circuit, state: circuit === 'open' ? 'error' : 'ok' },
    active: countFigure(active_requests),
    upgrades: countFigure(active_upgrades),
    overflows: countFigure(overflows, 'warning'),
    ...Object.fromEntries(each),
  };
}

/**
 * @param {LimitRow} limit
 * @returns {Figures}
 */
export function limitFigures({ hits, over, fullness }) {
  const state = fullness === undefined ? 'none' : fullness >= 1 ? 'warning' : 'ok';
  return {
    full: { text: fullness === undefined ? 'no hits here' : `${shareText(Math.min(fullness, 1))} full`, state },
    bar: { text: String(Math.round(Math.min(fullness ?? 0, 1) * 100)), state },
    hits: countFigure(hits),
    over: countFigure(over, 'warning'),
  };
}

/**
 * @param {UnmatchedRow} requests
 * @returns {Figures}
 */
export function unmatchedFigures({ at, requests }) {
  return { at: { text: at }, requests: countFigure(requests) };
}

/**
 * @param {FailureRow} failure
 * @returns {Figures}
 */
export function failureFigures({ at, request_id, method, path, mapping, status, problem, reason, upstream }) {
  const why = reason ?? (problem === undefined ? 'the service itself responded with this status' : '');
  return {
    at: { text: at },
    status: { text: String(status), state: 'error' },
    method: { text: method },
    path: { text: path },
    mapping: { text: mapping ?? 'no route' },
    problem: { text: problem ?? '', href: problem === undefined ? '' : `../problems/${encodeURIComponent(problem)}` },
    reason: { text: upstream === undefined ? why : `${why} (${upstream})` },
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

/** @typedef {import('../diagnostics.ts').TrafficRow} TrafficRow */

/**
 * `state` is ok, warning, error, or none for an insignificant figure. An empty `href` removes the link.
 * @typedef {{ readonly text: string, readonly state?: string, readonly href?: string }} Figure
 */
/** @typedef {Readonly<Record<string, Figure>>} Figures */

/**
 * @param {TrafficRow} traffic
 * @returns {Figures}
 */
export function trafficFigures({ recent, upstream, ...total }) {
  return {
    rate: { text: rateText(recent?.requests_per_second ?? 0), state: recent ? 'ok' : 'none' },
    errors: recent ? errorFigure(recent.error_share) : countFigure(undefined),
    p50: durationFigure(recent?.p50_ms),
    p99: durationFigure(recent?.p99_ms),
    auth: countFigure(recent?.refused_by_auth),
    limit: countFigure(recent?.refused_by_limit),
    ...sparklineFigures(recent?.requests ?? [], recent?.errors ?? [], recent?.slot_seconds ?? 5),
    total: countFigure(total.requests),
    total_errors: countFigure(total.errors, 'warning'),
    total_auth: countFigure(total.refused_by_auth),
    total_limit: countFigure(total.refused_by_limit),
    abandoned: countFigure(total.abandoned),
    in_flight: countFigure(total.in_flight),
    retries: countFigure(upstream?.retries),
    unavailable: countFigure(upstream?.unavailable, 'warning'),
    failed: countFigure(upstream?.failed, 'warning'),
    timeout: countFigure(upstream?.timeout, 'warning'),
    overloaded: countFigure(upstream?.overloaded, 'warning'),
  };
}

/**
 * Includes a text that describes the sparkline.
 * @param {readonly number[]} requests
 * @param {readonly number[]} errors
 * @param {number} slotSeconds
 * @returns {Figures}
 */
export function sparklineFigures(requests, errors, slotSeconds) {
  const chartMax = chartMaxOf(requests);
  const peak = rateText(Math.max(0, ...requests.slice(0, -1)) / slotSeconds);
  const failed = countText(sumOf(errors));
  const total = countText(sumOf(requests));
  const text = `${total} requests in five minutes, at most ${peak} a second; ${failed} of them failed`;
  return {
    sparkline: { text: requests.length === 0 ? 'no requests in five minutes' : text },
    requests_area: { text: areaPoints(requests, chartMax) },
    errors_area: { text: areaPoints(errors, chartMax) },
  };
}

/**
 * @param {number} share
 * @returns {Figure}
 */
export function errorFigure(share) {
  return { text: shareText(share), state: share > 0.3 ? 'error' : share > 0 ? 'warning' : 'none' };
}

/**
 * @param {number | undefined} milliseconds
 * @returns {Figure}
 */
function durationFigure(milliseconds) {
  return { text: durationText(milliseconds), state: milliseconds === undefined ? 'none' : 'ok' };
}

/**
 * @param {number | undefined} count
 * @param {string} [state] of a count above 0
 * @returns {Figure}
 */
export function countFigure(count, state = 'ok') {
  return { text: count === undefined ? '–' : countText(count), state: count ? state : 'none' };
}

/** @param {readonly number[]} numbers */
export function sumOf(numbers) {
  return numbers.reduce((sum, number) => sum + number, 0);
}

/** @typedef {Readonly<Record<'summary' | 'errors' | 'routes' | 'versions' | 'clusters' | 'limits' | 'unmatched', string>>} Structures */

/**
 * A short digest of the content of each part, without its figures.
 * @param {Diagnostics} diagnostics
 * @returns {Structures}
 */
export function structuresOf(diagnostics) {
  const { version, configuration, errors, errors_total, notices, notices_total } = diagnostics;
  const { routes, routes_total, routes_matching, clusters, clusters_total } = diagnostics;
  const { services, services_total, limits, limits_total, unmatched_requests, auth, ratelimit } = diagnostics;
  const isShown = [auth !== undefined, ratelimit !== undefined];
  return {
    summary: digestOf([version, configuration, isShown, routes_total]),
    errors: digestOf([visibleRows(errors), errors_total, visibleRows(notices), notices_total]),
    routes: digestOf([visibleRows(routes).map(withoutFigures), routes_total, routes_matching]),
    versions: digestOf(diagnostics.versions),
    clusters: digestOf([
      visibleRows(clusters).map(withoutClusterFigures),
      clusters_total,
      visibleRows(services),
      services_total,
    ]),
    limits: digestOf([visibleRows(limits).map(({ hits, over, fullness, ...limit }) => limit), limits_total]),
    unmatched: digestOf(unmatched_requests.map(({ method, path }) => [method, path])),
  };
}

/** @param {Diagnostics['routes'][number]} route */
function withoutFigures({ health, traffic, ...route }) {
  return [route, traffic.upstream !== undefined];
}

/** @param {Diagnostics['clusters'][number]} cluster */
function withoutClusterFigures({ name, used, addresses, mappings }) {
  return [name, used, addresses.map(({ origin }) => origin), mappings];
}

/**
 * FNV-1a over UTF-16 code units, which is good enough to detect changes.
 * @param {unknown} value
 */
function digestOf(value) {
  const text = JSON.stringify(value);
  let digest = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    digest = Math.imul(digest ^ text.charCodeAt(index), 0x01000193);
  }
  return (digest >>> 0).toString(36);
}
