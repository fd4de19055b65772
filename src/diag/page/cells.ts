/** Renders the elements of the page that its script keeps up to date. */
import { html, type Markup } from '#http';
import type { Figure, Figures } from '../browser/figures.js';
import { sparklineHeight, sparklineWidth, timeText } from '../browser/format.js';

/** Renders a text that the script keeps up to date. */
export function live(name: string, figures: Figures): Markup {
  const { text, state } = figureOf(name, figures);
  return html`<span data-figure="${name}"${stateOf(state)}>${text}</span>`;
}

/** Renders a numeric table cell. `label` is the column heading, which is shown in the cell on narrow screens. */
export function liveCell(label: string, name: string, figures: Figures): Markup {
  const { text, state } = figureOf(name, figures);
  return html`<td class="number" data-label="${label}" data-figure="${name}"${stateOf(state)}>${text}</td>`;
}

/** Renders the requests and errors of the last minutes as a chart. */
export function sparkline(figures: Figures): Markup {
  const { sparkline: summary, requests_area: requests, errors_area: errors } = figures;
  return html`<svg class="sparkline" viewBox="0 0 ${sparklineWidth} ${sparklineHeight}" preserveAspectRatio="none" role="img" data-figure="sparkline" aria-label="${summary?.text}"><polygon class="requests" data-figure="requests_area" points="${requests?.text}"/><polygon class="errors" data-figure="errors_area" points="${errors?.text}"/></svg>`;
}

/** Renders a time. `at` is in RFC 3339 and UTC. */
export function time(at: string, figure?: string): Markup {
  return html`<time datetime="${at}"${figure !== undefined && html` data-figure="${figure}"`}>${at && timeText(at)}</time>`;
}

/** Renders a path in which lines can break after each slash. */
export function breakable(path: string): Markup {
  return html`${path.split(/(?<=\/)/).map((step, index) => html`${index > 0 && html`<wbr>`}${step}`)}`;
}

/** Renders a part of the page that the script fetches again when `structure` has changed. */
export function part(name: string, structure: string, content: Markup): Markup {
  return html`<div data-part="${name}" data-structure="${structure}">${content}</div>`;
}

/** Renders a note if not all items are listed. */
export function partialListNote(listed: number, total: number, what: string): Markup {
  if (listed >= total) return html``;
  return html`<p class="hint">${listed.toLocaleString('en')} of ${total.toLocaleString('en')} ${what} are listed here.</p>`;
}

export function figureOf(name: string, figures: Figures): Figure {
  return figures[name] ?? { text: '' };
}

export function stateOf(state: string | undefined): Markup | undefined {
  return state === undefined ? undefined : html` data-state="${state}"`;
}
