/** Computes the figures of the page: each is a text, with a state that decides its colour. */
import { countText, durationText, rateText, shareText, timeText } from './format.js';
import { isUnhealthy } from './verdict.js';

/** @typedef {import('../diagnostics.ts').Diagnostics} Diagnostics */
/** @typedef {import('../diagnostics.ts').RecentRow} RecentRow */
/** @typedef {Diagnostics['clusters'][number]['addresses'][number]['health']} AddressHealth */

/**
 * `none` is the state of an insignificant figure.
 * @typedef {{ readonly text: string, readonly state?: 'ok' | 'warning' | 'error' | 'none' }} Figure
 */

/**
 * @param {number | undefined} count
 * @param {Figure['state']} state of a count above 0
 * @returns {Figure}
 */
export function countFigure(count, state = 'ok') {
  return { text: count === undefined ? '–' : countText(count), state: count ? state : 'none' };
}

/** @param {RecentRow | undefined} recent @returns {Figure} */
export function rateFigure(recent) {
  return { text: rateText(recent?.requests_per_second ?? 0), state: recent ? 'ok' : 'none' };
}

/** @param {number | undefined} share @returns {Figure} */
export function errorFigure(share) {
  if (share === undefined) return countFigure(undefined);
  return { text: shareText(share), state: share > 0.3 ? 'error' : share > 0 ? 'warning' : 'none' };
}

/** @param {number | undefined} milliseconds @returns {Figure} */
export function durationFigure(milliseconds) {
  return { text: durationText(milliseconds), state: milliseconds === undefined ? 'none' : 'ok' };
}

/** @param {Diagnostics['routes'][number]['health']} health @returns {Figure} */
export function routeHealthFigure(health) {
  if (health === 'unknown') return { text: 'no requests', state: 'none' };
  return { text: health, state: health === 'ok' ? 'ok' : health === 'degraded' ? 'warning' : 'error' };
}

/** @param {AddressHealth} health @returns {Figure} */
export function addressHealthFigure(health) {
  return { text: health, state: isUnhealthy(health) ? 'error' : health === 'healthy' ? 'ok' : 'none' };
}

/** A closed circuit is no good news: its service may be down. @param {'closed' | 'open'} circuit @returns {Figure} */
export function circuitFigure(circuit) {
  return { text: circuit, state: circuit === 'open' ? 'error' : 'none' };
}

const expiryNoticeMs = 30 * 86_400_000;

/** Warns as early as the log does. @param {string} at @param {string} now both in RFC 3339 and UTC @returns {Figure} */
export function expiryFigure(at, now) {
  const leftMs = Date.parse(at) - Date.parse(now);
  return { text: timeText(at), state: leftMs < 0 ? 'error' : leftMs < expiryNoticeMs ? 'warning' : 'ok' };
}

/** @param {number | undefined} fullness from 0 to 1 @returns {Figure} */
export function fullnessFigure(fullness) {
  if (fullness === undefined) return { text: 'no hits here', state: 'none' };
  return { text: `${shareText(Math.min(fullness, 1))} full`, state: fullness >= 1 ? 'warning' : 'ok' };
}

/**
 * The traffic of all listed routes together, and of requests without a route.
 * @param {Pick<Diagnostics, 'routes' | 'unmatched'>} diagnostics
 */
export function totalTraffic({ routes, unmatched }) {
  // Routes of the same name share their counts.
  const byName = new Map(routes.map(({ name, traffic }) => [name, traffic]));
  const traffics = [...byName.values(), unmatched];
  const recents = traffics.flatMap(({ recent }) => recent ?? []);
  const requests = slotSums(recents.map((recent) => recent.requests));
  const errors = slotSums(recents.map((recent) => recent.errors));
  const total = sumOf(requests);
  return {
    requests,
    errors,
    slot_seconds: recents[0]?.slot_seconds ?? 5,
    requests_per_second: sumOf(recents.map((recent) => recent.requests_per_second)),
    error_share: total === 0 ? 0 : sumOf(errors) / total,
    in_flight: sumOf(traffics.map(({ in_flight }) => in_flight)),
  };
}

/** Describes a sparkline in words. @param {Pick<RecentRow, 'requests' | 'errors' | 'slot_seconds'>} recent */
export function sparklineText({ requests, errors, slot_seconds }) {
  if (requests.length === 0) return 'no requests in five minutes';
  const peak = rateText(Math.max(0, ...requests.slice(0, -1)) / slot_seconds);
  const [total, failed] = [requests, errors].map((counts) => countText(sumOf(counts)));
  return `${total} requests in five minutes, at most ${peak} a second; ${failed} of them failed`;
}

/** @param {readonly (readonly number[])[]} lists of the same length */
function slotSums(lists) {
  return (lists[0] ?? []).map((_, index) => sumOf(lists.map((counts) => counts[index] ?? 0)));
}

/** @param {readonly number[]} numbers */
function sumOf(numbers) {
  return numbers.reduce((sum, number) => sum + number, 0);
}
