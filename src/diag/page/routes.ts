/** Renders the routes, with links to further pages of them, and the deprecated API versions. */
import { html, type Markup } from '#http';
import { type Figures, groupedRoutes, routeFigures, type Structures, trafficFigures } from '../browser/figures.js';
import { countOf, countText, rowsShownMax, timeText, visibleRows } from '../browser/format.js';
import type { Diagnostics, RouteRow, VersionRow } from '../diagnostics.ts';
import { breakable, live, liveCell, part, sparkline } from './cells.ts';

export function routesSection(diagnostics: Diagnostics, structures: Structures): Markup {
  return html`<section aria-labelledby="routes">
<h2 id="routes">Routes</h2>
${filterForm(diagnostics)}
${part('routes', structures.routes, html`${pageLinks(diagnostics)}${routeTables(diagnostics)}`)}
${part('versions', structures.versions, versionTable(diagnostics))}
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

/** Links to the previous and the next page if not all routes fit on this one. */
function pageLinks({ filter, offset, routes, routes_matching: matching }: Diagnostics): Markup {
  const count = visibleRows(routes).length;
  if (count >= matching) return html``;
  const at = (from: number) => `?${new URLSearchParams({ ...(filter && { filter }), offset: String(from) })}`;
  const range = count === 0 ? 'None' : `${countText(offset + 1)} to ${countText(offset + count)}`;
  return html`<nav class="pages" aria-label="Pages of routes"><p>${range} of ${countText(matching)} routes are shown. Enter a filter and press Return to find others.</p>
${offset > 0 && html`<a rel="prev" href="${at(Math.max(0, offset - rowsShownMax))}">Previous</a>`}
${offset + count < matching && html`<a rel="next" href="${at(offset + count)}">Next</a>`}
</nav>`;
}

/** The titles of the columns of numbers, and the figures in them. */
const columns = Object.entries({
  ...{ 'Req/s': 'rate', Errors: 'errors', p50: 'p50', p99: 'p99' },
  ...{ 'Rejected by auth': 'auth', 'Rejected by limit': 'limit' },
});

/**
 * Lists the routes of records first. The built-in routes are collapsed unless there is a filter, which may select them.
 */
function routeTables({ routes, unmatched, filter }: Diagnostics): Markup {
  const figures = trafficFigures(unmatched);
  const { configured, builtIn } = groupedRoutes(routes);
  const rowOf = (route: RouteRow) => routeRow(route, routes.indexOf(route));
  const noRoute = html`<tr data-row class="built-in"><th scope="row">No route</th><td class="target-cell">${details('no-route', html`404 response`, totals(figures))}</td>${figureCells(figures)}</tr>`;
  const caption =
    'In matching order. The figures cover the last five minutes, the requests per second the last minute.';
  return html`${routeTable(caption, html`${configured.map(rowOf)}${noRoute}`)}
${
  builtIn.length > 0 &&
  html`<details id="built-in"${filter !== '' && html` open`}><summary>${countOf(builtIn.length, 'built-in route')}</summary>
${routeTable('Routes of the server itself. They are matched together with the others, the longest prefix first.', html`${builtIn.map(rowOf)}`)}</details>`
}`;
}

function routeTable(caption: string, rows: Markup): Markup {
  return html`<table class="routes">
<caption>${caption}</caption>
<thead><tr><th scope="col">Route</th><th scope="col">Target</th><th scope="col">Traffic</th>${columns.map(([title]) => html`<th scope="col" class="number">${title}</th>`)}</tr></thead>
<tbody>
${rows}</tbody>
</table>`;
}

function routeRow(route: RouteRow, index: number): Markup {
  const { name, prefix, conditions, target, source, internal } = route;
  const figures = routeFigures(route);
  return html`<tr data-row id="route-${index}"${internal && html` class="built-in"`}>
<th scope="row"><code class="path">${prefix}</code>${conditions.map((condition) => html` <span class="chip">${condition}</span>`)}${!internal && html`<span class="minor">${name} <span class="place">${source && breakable(source)}</span></span>`}</th>
<td class="target-cell">${details(`${name}${prefix}`, html`${live('health', figures)} <span class="target">${target}</span>`, routeTerms(route, figures))}</td>
${figureCells(figures)}</tr>
`;
}

/** The cells for the sparkline and the numbers. */
function figureCells(figures: Figures): Markup {
  return html`<td>${sparkline(figures)}</td>${columns.map(([title, name]) => liveCell(title, name, figures))}`;
}

/** Collapsed details. `key` identifies them after an update. `terms` is the content of a description list. */
function details(key: string, summary: Markup, terms: Markup): Markup {
  return html`<details id="more-${key.replaceAll(/\s/g, '-')}"><summary>${summary}</summary><dl>${terms}</dl></details>`;
}

function routeTerms(route: RouteRow, figures: Figures): Markup {
  const {
    name,
    prefix,
    conditions,
    rewrite,
    service,
    authenticated,
    labels,
    timeout_ms: timeoutMs,
    cluster,
    traffic,
  } = route;
  return html`${[
    term('Name', name),
    service !== '' && term('Service', html`<code>${service}</code>`),
    term('Rewrite', rewrite === '' ? 'none' : html`<code>${rewrite}</code>`),
    term('Requires auth', authenticated ? 'yes' : 'no'),
    labels.length > 0 && term('Labels', labels.join(', ')),
    timeoutMs !== undefined && term('Time-out', timeoutMs === 0 ? 'none' : `${countText(timeoutMs)} ms`),
    cluster !== undefined && term('Cluster', html`<code>${cluster}</code>`),
    totals(figures),
    traffic.upstream !== undefined && attempts(figures),
    !conditions.includes('regex') && explainTerm(prefix),
  ]}`;
}

function explainTerm(prefix: string): Markup {
  const query = String(new URLSearchParams({ method: 'GET', url: prefix }));
  return term('Explain', html`<a href="../explain?${query}">GET ${prefix}</a>`);
}

function totals(figures: Figures): Markup {
  return html`${term('Since the start', html`${live('total', figures)} requests`)}${[
    term('In flight', live('in_flight', figures)),
    term('5xx responses', live('total_errors', figures)),
    term('Rejected by auth', live('total_auth', figures)),
    term('Rejected by limit', live('total_limit', figures)),
    term('Client disconnected', live('abandoned', figures)),
  ]}`;
}

function attempts(figures: Figures): Markup {
  return html`${[
    term('Retries', live('retries', figures)),
    term('Unavailable', live('unavailable', figures)),
    term('Failed', live('failed', figures)),
    term('Timed out', live('timeout', figures)),
    term('Overloaded', live('overloaded', figures)),
  ]}`;
}

function term(name: string, content: Markup | string): Markup {
  return html`<div><dt>${name}</dt><dd>${content}</dd></div>`;
}

function versionTable({ versions }: Diagnostics): Markup {
  if (versions.length === 0) return html``;
  return html`<table>
<caption>API versions that are deprecated or have a sunset date</caption>
<thead><tr><th scope="col">Version</th><th scope="col">Deprecated from</th><th scope="col">Sunset (410)</th><th scope="col">Successor</th></tr></thead>
<tbody>
${visibleRows(versions).map(versionRow)}</tbody>
</table>`;
}

function versionRow({ name, prefix, deprecation, sunset, successor, source }: VersionRow): Markup {
  return html`<tr data-row>
<th scope="row"><code>${prefix}</code><span class="minor">${name} <span class="place">${breakable(source)}</span></span></th>
<td data-label="Deprecated from">${deprecation === undefined ? '–' : timeText(deprecation)}</td>
<td data-label="Sunset (410)">${sunset === undefined ? '–' : timeText(sunset)}</td>
<td data-label="Successor">${successor === undefined ? '–' : html`<code>${breakable(successor)}</code>`}</td></tr>
`;
}
