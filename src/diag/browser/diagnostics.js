/** The script of the page: starts and pauses the updates, and filters the routes while the user types. */
import { openConnection } from './connection.js';
import { replaceChangedParts, setText, showConnection, showDiagnostics } from './display.js';
import { structuresOf } from './figures.js';
import { countOf, countText } from './format.js';

const pause = /** @type {HTMLButtonElement} */ (document.getElementById('pause'));
const form = /** @type {HTMLFormElement} */ (document.getElementById('filter-form'));
const input = /** @type {HTMLInputElement} */ (document.getElementById('filter'));

const connection = openConnection({
  query: location.search,
  onInterruption: showConnection,
  async onDiagnostics(diagnostics, transport) {
    try {
      const structures = structuresOf(diagnostics);
      showConnection(transport);
      if (await replaceChangedParts(structures)) filterRows();
      showDiagnostics(diagnostics, structures);
    } catch (error) {
      // Probably another version of the server, which sends different data. The page is outdated and must not look
      // live.
      showConnection('outdated');
      throw error;
    }
  },
});

pause.hidden = false;
pause.addEventListener('click', () => {
  const isPaused = pause.getAttribute('aria-pressed') !== 'true';
  pause.setAttribute('aria-pressed', String(isPaused));
  if (isPaused) connection.pause();
  else connection.resume();
});
document.addEventListener('visibilitychange', () => (document.hidden ? connection.hide() : connection.show()));

startFilter();

function startFilter() {
  input.addEventListener('input', filterRows);
  if (input.value !== input.defaultValue) filterRows();
}

function filterRows() {
  const text = input.value.trim().toLowerCase();
  const rows = [...document.querySelectorAll('.routes tbody tr')].filter((row) => row instanceof HTMLTableRowElement);
  for (const row of rows) row.hidden = !textOf(row).includes(text);
  const builtIn = document.getElementById('built-in');
  if (text !== '' && builtIn instanceof HTMLDetailsElement) builtIn.open = true;
  const routes = rows.filter(({ id }) => id !== '');
  const shown = routes.filter((row) => !row.hidden).length;
  const status = form.querySelector('[role="status"]');
  if (status) setText(status, `${countText(shown)} of ${countOf(routes.length, 'route')} shown`);
}

/** The searchable text of a route, without its figures. @param {HTMLTableRowElement} row */
function textOf(row) {
  return [...row.querySelectorAll('th, .target, .minor, [data-figure="health"]')]
    .map(({ textContent }) => textContent)
    .join(' ')
    .toLowerCase();
}
