/** The filter while somebody types: rows that do not hold the text are hidden. Return asks the server, which knows all routes. */
import { setText } from './fill.js';
import { countOf, countText } from './words.js';

const form = /** @type {HTMLFormElement} */ (document.getElementById('filter-form'));
const input = /** @type {HTMLInputElement} */ (document.getElementById('filter'));

export function followFilter() {
  input.addEventListener('input', filterRows);
  if (input.value !== input.defaultValue) filterRows();
}

export function filterRows() {
  const text = input.value.trim().toLowerCase();
  const rows = [...document.querySelectorAll('.routes tbody tr')].filter((row) => row instanceof HTMLTableRowElement);
  for (const row of rows) row.hidden = !textOf(row).includes(text);
  const routes = rows.filter(({ id }) => id !== '');
  const shown = routes.filter((row) => !row.hidden).length;
  const status = form.querySelector('[role="status"]');
  if (status) setText(status, `${countText(shown)} of ${countOf(routes.length, 'route')} shown`);
}

/** What tells a route, and not its figures. @param {HTMLTableRowElement} row */
function textOf(row) {
  return [...row.querySelectorAll('th, .target, .minor, [data-figure="health"]')]
    .map(({ textContent }) => textContent)
    .join(' ')
    .toLowerCase();
}
