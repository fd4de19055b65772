/** Fetches new data for the page by server-sent events, or else by polling. Stops while the page is hidden. */

/** @typedef {import('../diagnostics.ts').Diagnostics} Diagnostics */
/** How the diagnostics arrive. @typedef {'live' | 'polling'} Transport */
/** @typedef {'paused' | 'lost' | 'denied'} Interruption */

const pollMs = 3_000;
const reopenMs = 250;
const retryMsMax = 30_000;
/** A stream without an event for this long has stalled: the server sends one every two seconds. */
const eventMsMax = 10_000;
/** The server sends the first event at once. */
const firstEventMsMax = 3_000;

/**
 * `query` is the query of the page, so that the data contains the same rows.
 * @param {{
 *   query: string,
 *   onInterruption: (interruption: Interruption) => void,
 *   onDiagnostics: (diagnostics: Diagnostics, transport: Transport) => void,
 * }} options
 */
export function openConnection({ query, onInterruption, onDiagnostics }) {
  /** @type {EventSource | undefined} */
  let source;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let isPaused = false;
  /** Successful polls since the last event, and consecutive failed polls. */
  let polls = 0;
  let failures = 0;
  /** Lets a poll ignore a response that arrives after a stop, for example after a pause. */
  let stops = 0;

  function stop() {
    stops += 1;
    clearTimeout(timer);
    source?.close();
    source = undefined;
  }

  /** @param {() => void} next @param {number} milliseconds */
  function schedule(next, milliseconds) {
    clearTimeout(timer);
    timer = setTimeout(next, milliseconds);
  }

  function listen() {
    stop();
    if (isPaused || document.hidden) return;
    const current = new EventSource(`events${query}`);
    source = current;
    let hasEvents = false;
    current.addEventListener('diagnostics', (event) => {
      hasEvents = true;
      polls = 0;
      schedule(poll, eventMsMax);
      report('live', JSON.parse(event.data));
    });
    current.addEventListener('error', () => {
      current.close();
      // The server regularly ends streams, so that clients authenticate again.
      if (hasEvents) schedule(listen, reopenMs);
      else schedule(poll, 0);
    });
    schedule(poll, firstEventMsMax);
  }

  async function poll() {
    stop();
    const stopsBefore = stops;
    const diagnostics = await fetchDiagnostics(query);
    if (stops !== stopsBefore) return;
    if (typeof diagnostics === 'string') {
      failures += 1;
      onInterruption(diagnostics);
      schedule(poll, Math.min(retryMsMax, pollMs * 2 ** (failures - 1)));
      return;
    }
    polls += 1;
    report('polling', diagnostics);
    schedule(isPowerOfTwo(polls) ? listen : poll, pollMs);
  }

  /** @param {Transport} transport @param {Diagnostics} diagnostics */
  function report(transport, diagnostics) {
    failures = 0;
    onDiagnostics(diagnostics, transport);
  }

  listen();
  return {
    pause() {
      isPaused = true;
      stop();
      onInterruption('paused');
    },
    resume() {
      isPaused = false;
      listen();
    },
    hide: stop,
    show: listen,
  };
}

/**
 * Uses an absolute URL, because browsers reject a relative one if the page's URL contains a user and a password.
 * @param {string} query
 * @returns {Promise<Diagnostics | 'lost' | 'denied'>}
 */
async function fetchDiagnostics(query) {
  try {
    const response = await fetch(new URL(`diagnostics.json${query}`, location.href), { cache: 'no-store' });
    if (response.ok) return await response.json();
    return response.status === 401 || response.status === 403 ? 'denied' : 'lost';
  } catch {
    return 'lost';
  }
}

/**
 * Tries the stream again after 1, 2, 4, 8 … polls, because streams may be unavailable for long.
 * @param {number} count
 */
function isPowerOfTwo(count) {
  return (count & (count - 1)) === 0;
}
