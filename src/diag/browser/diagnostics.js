/** Keeps the diagnostics page up to date while somebody looks at it. */
import { openConnection } from './connection.js';
import { showConnection, showDiagnostics } from './display.js';
import { filterRows, followFilter } from './filter.js';
import { renewParts } from './parts.js';
import { structuresOf } from './structure.js';

const pause = /** @type {HTMLButtonElement} */ (document.getElementById('pause'));

const connection = openConnection({
  query: location.search,
  onState: showConnection,
  async onDiagnostics(diagnostics) {
    const structures = structuresOf(diagnostics);
    if (await renewParts(structures)) filterRows();
    showDiagnostics(diagnostics, structures);
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

followFilter();
