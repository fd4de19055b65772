/** Keeps the diagnostics page up to date while somebody looks at it. */
import { openConnection } from './connection.js';
import { showConnection, showDiagnostics } from './display.js';
import { filterRows, followFilter } from './filter.js';
import { renewParts } from './parts.js';
import { structuresOf } from './structure.js';

const pause = /** @type {HTMLButtonElement} */ (document.getElementById('pause'));

const connection = openConnection({
  query: location.search,
  onSilence: showConnection,
  async onDiagnostics(diagnostics, way) {
    try {
      const structures = structuresOf(diagnostics);
      showConnection(way);
      if (await renewParts(structures)) filterRows();
      showDiagnostics(diagnostics, structures);
    } catch (error) {
      // A server of another version tells them in another shape: what is shown is old, and must not look live.
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

followFilter();
