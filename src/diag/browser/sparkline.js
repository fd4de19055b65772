/** Counts over time as the outline of a small picture. */

export const sparklineWidth = 240;
export const sparklineHeight = 56;

/** What a full slot holds at least, so that a lone request does not look like a flood: one request a second. */
const fullAtLeast = 5;

/**
 * Points of a polygon that stands on the ground. The last slot is still being filled, and left out.
 * @param {readonly number[]} counts the oldest first
 * @param {number} most what reaches the top
 */
export function areaPoints(counts, most) {
  const whole = counts.slice(0, -1);
  if (whole.length < 2 || whole.every((count) => count === 0)) return '';
  const step = sparklineWidth / (whole.length - 1);
  const heights = whole.map((count) => Math.round(heightOf(count, most)));
  const tops = heights.flatMap((height, index) => {
    const isOnTheWay = height === heights[index - 1] && height === heights[index + 1];
    return isOnTheWay ? [] : [`${Math.round(index * step)},${height}`];
  });
  return `0,${sparklineHeight} ${tops.join(' ')} ${sparklineWidth},${sparklineHeight}`;
}

/** @param {readonly number[]} counts */
export function mostOf(counts) {
  return Math.max(fullAtLeast, ...counts.slice(0, -1));
}

/**
 * Two units stay free for the line's own width.
 * @param {number} count
 * @param {number} most
 */
function heightOf(count, most) {
  return sparklineHeight - (count / most) * (sparklineHeight - 2);
}
