/** How the page hears from the server: by events, by asking where there is no stream, and not at all while nobody looks. */

/** @typedef {import('../diagnostics.ts').Diagnostics} Diagnostics */
/** How it hears of the diagnostics. @typedef {'live' | 'polling'} Way */
/** @typedef {'paused' | 'lost'} Silence */

const pollMs = 3_000;
const renewMs = 250;
const retryMsMax = 30_000;
/** The server sends every two seconds: what is silent for longer hangs. */
const silenceMsMax = 10_000;

/**
 * `query`: of the page, which asks for the same rows.
 * @param {{
 *   query: string,
 *   onSilence: (silence: Silence) => void,
 *   onDiagnostics: (diagnostics: Diagnostics, way: Way) => void | Promise<void>,
 * }} options
 */
export function openConnection({ query, onSilence, onDiagnostics }) {
  /** @type {EventSource | undefined} */
  let source;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let isPaused = false;
  /** How often the server was asked since the stream was last tried, and how often in vain. */
  let polls = 0;
  let failures = 0;
  /** Tells answers that come after a pause from those that are waited for. */
  let turn = 0;

  function stop() {
    turn += 1;
    clearTimeout(timer);
    source?.close();
    source = undefined;
  }

  /** @param {() => void} next @param {number} milliseconds */
  function later(next, milliseconds) {
    clearTimeout(timer);
    timer = setTimeout(next, milliseconds);
  }

  function listen() {
    stop();
    if (isPaused || document.hidden) return;
    const current = new EventSource(`events${query}`);
    source = current;
    let isHeard = false;
    current.addEventListener('diagnostics', (event) => {
      isHeard = true;
      polls = 0;
      later(poll, silenceMsMax);
      tell('live', JSON.parse(event.data));
    });
    current.addEventListener('error', () => {
      current.close();
      // The server ends streams from time to time, so that credentials are asked for anew.
      if (isHeard) later(listen, renewMs);
      else later(poll, 0);
    });
    later(poll, silenceMsMax);
  }

  async function poll() {
    stop();
    const mine = turn;
    const diagnostics = await ask(query);
    if (mine !== turn) return;
    if (diagnostics === undefined) {
      failures += 1;
      onSilence('lost');
      later(poll, Math.min(retryMsMax, pollMs * 2 ** (failures - 1)));
      return;
    }
    polls += 1;
    tell('polling', diagnostics);
    later(isPowerOfTwo(polls) ? listen : poll, pollMs);
  }

  /** @param {Way} way @param {Diagnostics} diagnostics */
  function tell(way, diagnostics) {
    failures = 0;
    onDiagnostics(diagnostics, way);
  }

  listen();
  return {
    pause() {
      isPaused = true;
      stop();
      onSilence('paused');
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
 * Asked by its whole address: relative to that of a page that was opened with a name and a password, browsers refuse it.
 * @param {string} query
 * @returns {Promise<Diagnostics | undefined>}
 */
async function ask(query) {
  try {
    const answer = await fetch(new URL(`./${query}`, location.href), {
      headers: { Accept: 'application/json' },
      cache: 'no-store',
    });
    return answer.ok ? await answer.json() : undefined;
  } catch {
    return undefined;
  }
}

/** The stream is tried again after 1, 2, 4 and so on: it may be full for long. @param {number} count */
function isPowerOfTwo(count) {
  return (count & (count - 1)) === 0;
}
