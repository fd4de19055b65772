/** What came of requests, cell by cell: of a route, or of all of them. */
import { areaPoints, mostOf } from './sparkline.js';
import { countText, durationText, rateText, shareText } from './words.js';

/** @typedef {import('../diagnostics-traffic.ts').TrafficRow} TrafficRow */

/**
 * `state`: well, watch, ill, or none for what is of no weight. `href`: of a link, empty for none.
 * @typedef {{ readonly text: string, readonly state?: string, readonly href?: string }} Figure
 */
/** @typedef {Readonly<Record<string, Figure>>} Figures */

/**
 * @param {TrafficRow} traffic
 * @returns {Figures}
 */
export function trafficFigures({ recent, upstream, ...total }) {
  return {
    rate: { text: rateText(recent?.requests_per_second ?? 0), state: recent ? 'well' : 'none' },
    errors: recent ? errorFigure(recent.error_share) : countFigure(undefined),
    p50: durationFigure(recent?.p50_ms),
    p99: durationFigure(recent?.p99_ms),
    auth: countFigure(recent?.refused_by_auth),
    limit: countFigure(recent?.refused_by_limit),
    ...pictureFigures(recent?.requests ?? [], recent?.errors ?? [], recent?.slot_seconds ?? 5),
    total: countFigure(total.requests),
    total_errors: countFigure(total.errors, 'watch'),
    total_auth: countFigure(total.refused_by_auth),
    total_limit: countFigure(total.refused_by_limit),
    abandoned: countFigure(total.abandoned),
    in_flight: countFigure(total.in_flight),
    retries: countFigure(upstream?.retries),
    unavailable: countFigure(upstream?.unavailable, 'watch'),
    failed: countFigure(upstream?.failed, 'watch'),
    timeout: countFigure(upstream?.timeout, 'watch'),
    overloaded: countFigure(upstream?.overloaded, 'watch'),
  };
}

/**
 * A picture says what its text says.
 * @param {readonly number[]} requests
 * @param {readonly number[]} errors
 * @param {number} slotSeconds
 * @returns {Figures}
 */
export function pictureFigures(requests, errors, slotSeconds) {
  const most = mostOf(requests);
  const peak = rateText(Math.max(0, ...requests.slice(0, -1)) / slotSeconds);
  const failed = countText(sumOf(errors));
  const whole = countText(sumOf(requests));
  const text = `${whole} requests in five minutes, at most ${peak} a second; ${failed} of them failed`;
  return {
    picture: { text: requests.length === 0 ? 'no requests in five minutes' : text },
    requests_area: { text: areaPoints(requests, most) },
    errors_area: { text: areaPoints(errors, most) },
  };
}

/**
 * @param {number} share
 * @returns {Figure}
 */
export function errorFigure(share) {
  return { text: shareText(share), state: share > 0.3 ? 'ill' : share > 0 ? 'watch' : 'none' };
}

/**
 * @param {number | undefined} milliseconds
 * @returns {Figure}
 */
function durationFigure(milliseconds) {
  return { text: durationText(milliseconds), state: milliseconds === undefined ? 'none' : 'well' };
}

/**
 * @param {number | undefined} count
 * @param {string} [state] of more than none
 * @returns {Figure}
 */
export function countFigure(count, state = 'well') {
  return { text: count === undefined ? '–' : countText(count), state: count ? state : 'none' };
}

/** @param {readonly number[]} numbers */
export function sumOf(numbers) {
  return numbers.reduce((sum, number) => sum + number, 0);
}
