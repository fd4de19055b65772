/** The script of the page: shows the diagnostics as they arrive, pauses them, and filters the routes while the user types. */
import { openConnection } from './connection.js';
import { h } from './elements.js';
import { timeText } from './format.js';
import { partsOf } from './parts.js';
import { update } from './update.js';
import { verdictOf } from './verdict.js';

/** @typedef {import('../diagnostics.ts').Diagnostics} Diagnostics */

const byId = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
const pause = byId('pause');
const filter = /** @type {HTMLInputElement} */ (byId('filter'));
const name = document.querySelector('h1')?.textContent ?? '';

/** @type {Diagnostics | undefined} */
let latest;

const connection = openConnection({
  query: location.search,
  onInterruption: showConnection,
  onDiagnostics(diagnostics, transport) {
    try {
      showDiagnostics(diagnostics);
      showConnection(transport);
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
filter.addEventListener('input', () => {
  if (latest !== undefined) showParts(latest);
  if (typedFilter() !== '') byId('built-in')?.setAttribute('open', '');
});

/** @param {Diagnostics} diagnostics */
function showDiagnostics(diagnostics) {
  const isFirst = latest === undefined;
  const { state, text } = verdictOf(diagnostics);
  const { at } = diagnostics;
  showParts(diagnostics);
  latest = diagnostics;
  byId('verdict').dataset.state = state;
  byId('verdict').hidden = false;
  byId('sections').hidden = false;
  update(byId('verdict'), text);
  update(byId('snapshot'), ['as of ', h('time', { datetime: at }, timeText(at).slice(11))]);
  document.title = `${text} – ${name}`;
  // Before, there was nothing to scroll to.
  if (isFirst && location.hash !== '') byId(location.hash.slice(1))?.scrollIntoView();
}

/** @param {Diagnostics} diagnostics */
function showParts(diagnostics) {
  const parts = partsOf(diagnostics, typedFilter());
  for (const element of document.querySelectorAll('[data-part]')) {
    update(element, parts[/** @type {keyof typeof parts} */ (element.getAttribute('data-part'))]);
  }
}

/** What the user has typed since the page was loaded. */
function typedFilter() {
  return filter.value === filter.defaultValue ? '' : filter.value.trim().toLowerCase();
}

/** @typedef {import('./connection.js').Transport | import('./connection.js').Interruption | 'outdated'} ConnectionState */

/** @param {ConnectionState} state */
function showConnection(state) {
  const texts = {
    live: 'Live',
    polling: 'Live (polling)',
    paused: 'Paused',
    lost: 'Connection lost, retrying',
    denied: 'Access denied, retrying',
    outdated: 'The server has changed: reload this page',
  };
  byId('connection').dataset.state = state;
  document.documentElement.dataset.connection = state;
  // Screen readers announce a change of this element, but not of the time next to it.
  update(byId('connection'), texts[state]);
  if (state === 'lost' || state === 'denied' || state === 'outdated') document.title = `${texts[state]} – ${name}`;
}
