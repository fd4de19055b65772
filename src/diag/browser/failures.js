/** The list of failed requests: rows come at the top and go at the bottom, and those between stay what they are. */
import { fillRow } from './fill.js';

/** @param {readonly import('./figures.js').Figures[]} failures the newest first */
export function showFailures(failures) {
  const body = element('failure-rows');
  const known = new Map([...body.children].map((row) => [keyOf(row), row]));
  const rows = failures.map(
    (figures) => known.get(`${figures.request_id?.text} ${figures.at?.text}`) ?? rowOf(figures),
  );
  const isSame = rows.length === body.children.length && rows.every((row, index) => row === body.children[index]);
  if (!isSame) arrange(body, rows);
  element('failure-table').hidden = rows.length === 0;
  element('no-failures').hidden = rows.length > 0;
}

/**
 * Rows that stay are not taken out, so that what is focused or selected in them is so still.
 * @param {HTMLElement} body
 * @param {readonly Element[]} rows
 */
function arrange(body, rows) {
  const staying = new Set(rows);
  for (const row of [...body.children]) if (!staying.has(row)) row.remove();
  for (const [index, row] of rows.entries()) {
    if (body.children[index] !== row) body.insertBefore(row, body.children[index] ?? null);
  }
}

/** @param {Element} row */
function keyOf(row) {
  const id = row.querySelector('[data-figure="request_id"]')?.textContent;
  return `${id} ${row.querySelector('time')?.dateTime}`;
}

/** @param {import('./figures.js').Figures} figures */
function rowOf(figures) {
  const template = /** @type {HTMLTemplateElement} */ (element('failure-row'));
  const row = document.importNode(/** @type {Element} */ (template.content.firstElementChild), true);
  fillRow(row, figures);
  return row;
}

/** @param {string} id */
function element(id) {
  return /** @type {HTMLElement} */ (document.getElementById(id));
}
