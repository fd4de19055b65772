/** How many rows of a kind the page shows at once: more than that nobody reads, and they would take long to draw. */

export const rowsShownMax = 200;

/**
 * @template Row
 * @param {readonly Row[]} rows
 */
export function shown(rows) {
  return rows.slice(0, rowsShownMax);
}
