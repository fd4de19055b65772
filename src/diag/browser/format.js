/** Formats numbers, durations, times and sparklines as text. */

/** @param {number} perSecond */
export function rateText(perSecond) {
  if (perSecond > 0 && perSecond < 0.1) return '<0.1';
  return perSecond < 10 ? String(Math.round(perSecond * 10) / 10) : countText(perSecond);
}

/** Shows 0 % and 100 % only for exactly 0 and 1.
 * @param {number} share from 0 to 1 */
export function shareText(share) {
  if (share > 0 && share < 0.001) return '<0.1 %';
  if (share < 1 && share >= 0.995) return '>99 %';
  return share < 0.1 ? `${Math.round(share * 1000) / 10} %` : `${Math.round(share * 100)} %`;
}

/** @param {number | undefined} milliseconds */
export function durationText(milliseconds) {
  if (milliseconds === undefined) return '–';
  if (milliseconds >= 1000) return `${Math.round(milliseconds / 100) / 10} s`;
  return `${milliseconds < 10 ? Math.round(milliseconds * 10) / 10 : Math.round(milliseconds)} ms`;
}

/** @param {number} count */
export function countText(count) {
  return Math.round(count).toLocaleString('en');
}

/** `1 route`, `2 routes`.
 * @param {number} count
 * @param {string} noun
 * @param {string} [plural] */
export function countOf(count, noun, plural = `${noun}s`) {
  return `${countText(count)} ${count === 1 ? noun : plural}`;
}

/** Formats a time span with its two largest units: `3 h 12 min`.
 * @param {number} seconds */
export function spanText(seconds) {
  const whole = Math.floor(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 24 ? pair(hours, 'h', minutes % 60, 'min') : pair(Math.floor(hours / 24), 'd', hours % 24, 'h');
}

/** @param {number} seconds */
export function agoText(seconds) {
  return seconds < 1 ? 'just now' : `${spanText(seconds)} ago`;
}

/** `2026-01-02 03:04:05 UTC`.
 * @param {string} at RFC 3339, in UTC */
export function timeText(at) {
  return `${at.slice(0, 10)} ${at.slice(11, 19)} UTC`;
}

/**
 * @param {number} large
 * @param {string} largeUnit
 * @param {number} small
 * @param {string} smallUnit
 */
function pair(large, largeUnit, small, smallUnit) {
  return small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`;
}

export const sparklineWidth = 240;
export const sparklineHeight = 56;

/**
 * The top of a chart represents at least this many requests in a slot of five seconds, so that a single request does not
 * look like a flood.
 */
const chartMaxMin = 5;

/**
 * The points of a polygon on the base line. Omits the last slot, which is still being filled.
 * @param {readonly number[]} counts oldest first
 * @param {number} chartMax the count at the top of the chart
 */
export function areaPoints(counts, chartMax) {
  const complete = counts.slice(0, -1);
  if (complete.length < 2 || complete.every((count) => count === 0)) return '';
  const step = sparklineWidth / (complete.length - 1);
  const ys = complete.map((count) => Math.round(yOf(count, chartMax)));
  const tops = ys.flatMap((y, index) => {
    const isRedundant = y === ys[index - 1] && y === ys[index + 1];
    return isRedundant ? [] : [`${Math.round(index * step)},${y}`];
  });
  return `0,${sparklineHeight} ${tops.join(' ')} ${sparklineWidth},${sparklineHeight}`;
}

/** @param {readonly number[]} counts */
export function chartMaxOf(counts) {
  return Math.max(chartMaxMin, ...counts.slice(0, -1));
}

/**
 * The y coordinate of a count. Leaves two units at the top for the width of the line.
 * @param {number} count
 * @param {number} chartMax
 */
function yOf(count, chartMax) {
  return sparklineHeight - (count / chartMax) * (sparklineHeight - 2);
}

/** The maximum number of rows in each table of the page. More would take long to render. */
export const rowsShownMax = 200;

/**
 * @template Row
 * @param {readonly Row[]} rows
 */
export function visibleRows(rows) {
  return rows.slice(0, rowsShownMax);
}
