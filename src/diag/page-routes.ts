/** The routes in the order in which they are tried, a page of them at a time, and what came of their requests. */
import { html, type Markup } from '#http';
import { rowsShownMax, shown } from './browser/shown.js';
import type { Structures } from './browser/structure.js';
import { trafficFigures } from './browser/traffic-figures.js';
import { countText } from './browser/words.js';
import type { Diagnostics } from './diagnostics.ts';
import { part } from './page-cells.ts';
import { more, totals } from './page-route-more.ts';
import { figureCells, routeRow } from './page-route-row.ts';
import { versionsPart } from './page-versions.ts';

export function routesSection(diagnostics: Diagnostics, structures: Structures): Markup {
  return html`<section aria-labelledby="routes">
<h2 id="routes">Routes</h2>
${filterForm(diagnostics)}
${part('routes', structures.routes, html`${pageLinks(diagnostics)}${routeTable(diagnostics)}`)}
${versionsPart(diagnostics, structures)}
</section>`;
}

function filterForm({ filter, routes_total: total, routes_matching: matching }: Diagnostics): Markup {
  return html`<form id="filter-form" class="filter" method="get" role="search">
<label for="filter">Filter routes, services and clusters</label>
<input id="filter" name="filter" type="search" value="${filter}" autocomplete="off" spellcheck="false">
<button>Filter</button>
${filter !== '' && html`<a href="./">Show all</a>`}
<p id="filter-count" role="status">${countText(matching)} of ${countText(total)} routes</p>
</form>`;
}

/** Where there are more than one answer lists. */
function pageLinks({ filter, offset, routes, routes_matching: matching }: Diagnostics): Markup {
  const count = shown(routes).length;
  if (count >= matching) return html``;
  const at = (from: number) => `?${new URLSearchParams({ ...(filter && { filter }), offset: String(from) })}`;
  const range = count === 0 ? 'None' : `${countText(offset + 1)} to ${countText(offset + count)}`;
  return html`<nav class="pages" aria-label="Pages of routes"><p>${range} of ${countText(matching)} routes are shown. The filter, sent with Return, finds the others.</p>
${offset > 0 && html`<a rel="prev" href="${at(Math.max(0, offset - rowsShownMax))}">Those before</a>`}
${offset + count < matching && html`<a rel="next" href="${at(offset + count)}">Those after</a>`}
</nav>`;
}

const columns = ['Req/s', 'Errors', 'p50', 'p99', 'Refused by auth', 'Refused by limit'];

function routeTable({ routes, unmatched }: Diagnostics): Markup {
  const figures = trafficFigures(unmatched);
  return html`<table class="routes">
<caption>From top to bottom as they are tried. Figures are of the last five minutes, requests a second of the last one.</caption>
<thead><tr><th scope="col">Route</th><th scope="col">Leads to</th><th scope="col">Traffic</th>${columns.map((title) => html`<th scope="col" class="number">${title}</th>`)}</tr></thead>
<tbody>
${shown(routes).map(routeRow)}<tr data-row class="built-in"><th scope="row">No route</th><td class="to">${more('none', html`answered with 404`, totals(figures))}</td>${figureCells(figures)}</tr>
</tbody>
</table>`;
}
