/** Updates the page: writes changed figures into its cells, and replaces parts whose rows have changed. */
import { figuresOf } from './figures.js';
import { agoText, timeText } from './format.js';
import { verdictOf } from './verdict.js';

/** @typedef {import('../diagnostics.ts').Diagnostics} Diagnostics */

const title = document.querySelector('h1')?.textContent ?? '';

/**
 * Does not update a part of the page that was rendered for different rows.
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
  showSnapshotTime(diagnostics.at);
  showTimes(Date.parse(diagnostics.at));
}

const connectionTexts = {
  live: 'Live',
  polling: 'Live (polling)',
  paused: 'Paused',
  lost: 'Connection lost, retrying',
  outdated: 'The server has changed: reload this page',
};

/**
 * Screen readers announce changes of this element, but not of the time next to it.
 * @param {keyof typeof connectionTexts} state
 */
export function showConnection(state) {
  const element = document.getElementById('connection');
  if (element === null || element.dataset.state === state) return;
  element.dataset.state = state;
  document.documentElement.dataset.connection = state;
  setText(element, connectionTexts[state]);
  if (state === 'lost' || state === 'outdated') document.title = `${connectionTexts[state]} – ${title}`;
}

/** Shows times as `2 min ago`, with the exact time in the tooltip. @param {number} nowMs on the server's clock */
function showTimes(nowMs) {
  for (const element of document.querySelectorAll('main time')) {
    if (!(element instanceof HTMLTimeElement)) continue;
    element.title = timeText(element.dateTime);
    setText(element, agoText((nowMs - Date.parse(element.dateTime)) / 1000));
  }
}

/** @param {string} at */
function showSnapshotTime(at) {
  const element = document.querySelector('time[data-figure="snapshot"]');
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

/**
 * @param {Element} row
 * @param {import('./figures.js').Figures} figures
 */
function fillRow(row, figures) {
  for (const cell of row.querySelectorAll('[data-figure]')) {
    const figure = figures[/** @type {HTMLElement | SVGElement} */ (cell).dataset.figure ?? ''];
    if (figure !== undefined) fillCell(cell, figure);
  }
}

/**
 * Writes only changes, so that selections and screen readers keep their place.
 * @param {Node} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * @param {Element} cell
 * @param {import('./figures.js').Figure} figure
 */
function fillCell(cell, { text, state, href }) {
  if (state !== undefined) setAttribute(cell, 'data-state', state);
  if (href !== undefined) setAttribute(cell, 'href', href);
  const name = figureAttribute(cell);
  if (name === undefined) setText(cell, text);
  else setAttribute(cell, name, text);
}

/** The attribute that contains the figure, or undefined if the figure is the text of the cell. @param {Element} cell */
function figureAttribute(cell) {
  if (cell instanceof SVGPolygonElement) return 'points';
  if (cell instanceof SVGRectElement) return 'width';
  if (cell instanceof SVGSVGElement) return 'aria-label';
  return cell instanceof HTMLTimeElement ? 'datetime' : undefined;
}

/**
 * @param {Element} element
 * @param {string} name
 * @param {string} value an empty `href` removes the link
 */
function setAttribute(element, name, value) {
  if (name === 'href' && value === '') element.removeAttribute(name);
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/** @param {readonly import('./figures.js').Figures[]} failures newest first */
function showFailures(failures) {
  const body = element('failure-rows');
  const known = new Map([...body.children].map((row) => [keyOf(row), row]));
  const rows = failures.map(
    (figures) => known.get(`${figures.request_id?.text} ${figures.at?.text}`) ?? rowOf(figures),
  );
  const isSame = rows.length === body.children.length && rows.every((row, index) => row === body.children[index]);
  if (!isSame) replaceRows(body, rows);
  element('failure-table').hidden = rows.length === 0;
  element('no-failures').hidden = rows.length > 0;
}

/**
 * Does not remove and reinsert rows that stay, so that they keep focus and selection.
 * @param {HTMLElement} body
 * @param {readonly Element[]} rows
 */
function replaceRows(body, rows) {
  const kept = new Set(rows);
  for (const row of [...body.children]) if (!kept.has(row)) row.remove();
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

/** The structures requested last. Avoids an endless loop of requests if the server renders a different structure. */
const requested = new Map();

/**
 * Replaces the parts whose rows have changed by freshly rendered ones from the server. Resolves to whether it did.
 * @param {Readonly<Record<string, string>>} structures the current structures, by part
 */
export async function replaceChangedParts(structures) {
  const changed = [...document.querySelectorAll('[data-part]')].filter((part) => isChanged(part, structures));
  if (changed.length === 0) return false;
  for (const [name, structure] of Object.entries(structures)) requested.set(name, structure);
  const page = await fetchPage();
  if (page === undefined) requested.clear();
  else for (const part of changed) replace(part, page.querySelector(`[data-part="${nameOf(part)}"]`));
  return page !== undefined;
}

/**
 * @param {Element} part
 * @param {Readonly<Record<string, string>>} structures
 */
function isChanged(part, structures) {
  const structure = structures[nameOf(part)];
  return part.getAttribute('data-structure') !== structure && requested.get(nameOf(part)) !== structure;
}

async function fetchPage() {
  try {
    const response = await fetch(location.href, { headers: { Accept: 'text/html' }, cache: 'no-store' });
    return response.ok ? new DOMParser().parseFromString(await response.text(), 'text/html') : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Keeps the focus, and which details are open.
 * @param {Element} old
 * @param {Element | null} rendered
 */
function replace(old, rendered) {
  if (rendered === null) return;
  const open = [...old.querySelectorAll('details[open]')].map(({ id }) => id);
  const wasClosed = [...old.querySelectorAll('details:not([open])')].map(({ id }) => id);
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  const next = document.importNode(rendered, true);
  old.replaceWith(next);
  for (const details of next.querySelectorAll('details')) {
    if (open.includes(details.id)) details.open = true;
    if (wasClosed.includes(details.id)) details.open = false;
  }
  restoreFocus(next, focused);
}

/**
 * @param {Element} part
 * @param {Element | null} focused
 */
function restoreFocus(part, focused) {
  const details = focused?.closest('details');
  if (!details) return;
  const replacement = [...part.querySelectorAll('details')].find(({ id }) => id === details.id);
  replacement?.querySelector('summary')?.focus({ preventScroll: true });
}

/** @param {Element} part */
function nameOf(part) {
  return part.getAttribute('data-part') ?? '';
}
