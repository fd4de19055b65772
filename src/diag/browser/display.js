/** Writes figures into the cells that the server made for them; nothing that it need not touch is touched. */
import { showFailures } from './failures.js';
import { figuresOf } from './figures.js';
import { fillRow, setText } from './fill.js';
import { verdictOf } from './verdict.js';
import { agoText, timeText } from './words.js';

/** @typedef {import('../diagnostics.ts').Diagnostics} Diagnostics */

const title = document.querySelector('h1')?.textContent ?? '';

/**
 * A part that is made for other rows than these keeps its figures.
 * @param {Diagnostics} diagnostics
 * @param {Readonly<Record<string, string>>} structures of these diagnostics, by part
 */
export function showDiagnostics(diagnostics, structures) {
  const { failures, ...parts } = figuresOf(diagnostics);
  showVerdict(diagnostics);
  for (const [name, rows] of Object.entries(parts)) {
    const part = document.querySelector(`[data-part="${name}"]`);
    if (part?.getAttribute('data-structure') === structures[name]) showRows(part, rows);
  }
  showFailures(failures);
  showTaken(diagnostics.at);
  showTimes(Date.parse(diagnostics.at));
}

const words = {
  live: 'Live',
  polling: 'Live by asking now and then',
  paused: 'Paused',
  lost: 'Connection lost, trying again',
  outdated: 'The server has changed: load this page again',
};

/** Announced when it changes; the time beside it is not. @param {keyof typeof words} state */
export function showConnection(state) {
  const element = document.getElementById('connection');
  if (element === null || element.dataset.state === state) return;
  element.dataset.state = state;
  document.documentElement.dataset.connection = state;
  setText(element, words[state]);
  if (state === 'lost' || state === 'outdated') document.title = `${words[state]} – ${title}`;
}

/** `2 min ago` in place of the time of day, which stays in the title. @param {number} nowMs by the server's clock */
function showTimes(nowMs) {
  for (const element of document.querySelectorAll('main time')) {
    if (!(element instanceof HTMLTimeElement)) continue;
    element.title = timeText(element.dateTime);
    setText(element, agoText((nowMs - Date.parse(element.dateTime)) / 1000));
  }
}

/** @param {string} at */
function showTaken(at) {
  const element = document.querySelector('time[data-figure="taken"]');
  if (!(element instanceof HTMLTimeElement)) return;
  element.dateTime = at;
  setText(element, timeText(at).slice(11));
}

/** @param {Diagnostics} diagnostics */
function showVerdict(diagnostics) {
  const { state, text } = verdictOf(diagnostics);
  const element = document.getElementById('verdict');
  if (element === null) return;
  element.dataset.state = state;
  setText(element, text);
  document.title = `${text} – ${title}`;
}

/**
 * @param {Element | null} part
 * @param {readonly import('./figures.js').Figures[]} rows
 */
function showRows(part, rows) {
  const elements = [...(part?.querySelectorAll('[data-row]') ?? [])];
  for (const [index, element] of elements.entries()) fillRow(element, rows[index] ?? {});
}
