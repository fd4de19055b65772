/** Renders the tables of routes, API versions, services and limits, from cells that the script keeps up to date. */
import { html, type Markup } from '#http';
import {
  clusterFigures,
  type Figure,
  type Figures,
  groupedRoutes,
  limitFigures,
  routeFigures,
  type Structures,
  trafficFigures,
} from './browser/figures.js';
import {
  countOf,
  countText,
  rowsShownMax,
  sparklineHeight,
  sparklineWidth,
  timeText,
  visibleRows,
} from './browser/format.js';
import type { ClusterRow, Diagnostics, LimitRow, RouteRow, ServiceRow, VersionRow } from './diagnostics.ts';

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

export function targetsSection(diagnostics: Diagnostics, structures: Structures): Markup {
  return html`<section aria-labelledby="targets">
<h2 id="targets">Services</h2>
${part('clusters', structures.clusters, html`${clusterTable(diagnostics)}${serviceTable(diagnostics)}`)}
</section>`;
}

function clusterTable({ clusters, clusters_total: total }: Diagnostics): Markup {
  if (total === 0) return html`<p class="hint">All services run in this server.</p>`;
  return html`<table>
<caption>Remote HTTP services</caption>
<thead><tr><th scope="col">Cluster</th><th scope="col">Addresses</th><th scope="col">Circuit</th><th scope="col" class="number">In flight</th><th scope="col" class="number">Upgrades</th><th scope="col" class="number">Rejected by circuit</th><th scope="col">Mappings</th></tr></thead>
<tbody>
${visibleRows(clusters).map(clusterRow)}</tbody>
</table>
${partialListNote(visibleRows(clusters).length, total, 'clusters')}`;
}

function clusterRow(cluster: ClusterRow): Markup {
  const { name, service, addresses, used, mappings, mappings_total: mappingsTotal } = cluster;
  const figures = clusterFigures(cluster);
  return html`<tr data-row>
<th scope="row">${name}${service !== name && html`<span class="minor">${service}</span>`}${!used && html`<span class="minor">not used yet</span>`}</th>
<td data-label="Addresses"><ul class="bare">${addresses.map(({ origin }, index) => html`<li><code>${origin}</code> ${live(`health_${index}`, figures)}, ${live(`active_${index}`, figures)} in flight</li>`)}</ul></td>
<td data-label="Circuit">${live('circuit', figures)}</td>
${liveCell('In flight', 'active', figures)}${liveCell('Upgrades', 'upgrades', figures)}${liveCell('Rejected by circuit', 'overflows', figures)}
<td data-label="Mappings">${mappings.length === 0 ? '–' : mappings.join(', ')}${mappings.length < mappingsTotal && ` and ${countText(mappingsTotal - mappings.length)} more`}</td></tr>
`;
}

function serviceTable({ services, services_total: total }: Diagnostics): Markup {
  if (total === 0) return html``;
  return html`<details id="services"${total <= servicesOpenMax && html` open`}>
<summary>${countOf(total, 'service')} named in records</summary>
<table>
<thead><tr><th scope="col">Role</th><th scope="col">Service</th><th scope="col">Target</th></tr></thead>
<tbody>
${visibleRows(services).map(serviceRow)}</tbody>
</table>
${partialListNote(visibleRows(services).length, total, 'services')}
</details>`;
}

const servicesOpenMax = 10;

function serviceRow({ role, service, target }: ServiceRow): Markup {
  return html`<tr><th scope="row">${role}</th><td data-label="Service"><code>${service}</code></td><td data-label="Target">${target}</td></tr>
`;
}

export function limitsSection(diagnostics: Diagnostics, structures: Structures): Markup {
  return html`<section aria-labelledby="limits">
<h2 id="limits">Limits</h2>
${part('limits', structures.limits, limitTable(diagnostics))}
</section>`;
}

function limitTable({ limits, limits_total: total }: Diagnostics): Markup {
  if (total === 0) return html`<p class="hint">No limits are configured here.</p>`;
  return html`<table>
<caption>Fullness is that of the fullest counter of each limit. Hits are those in this process since the start.</caption>
<thead><tr><th scope="col">Descriptor</th><th scope="col">Limit</th><th scope="col">Fullness</th><th scope="col" class="number">Hits</th><th scope="col" class="number">Over limit</th></tr></thead>
<tbody>
${visibleRows(limits).map(limitRow)}</tbody>
</table>
${partialListNote(visibleRows(limits).length, total, 'limits')}`;
}

function limitRow(row: LimitRow): Markup {
  const { domain, descriptor, limit, source } = row;
  const figures = limitFigures(row);
  return html`<tr data-row>
<th scope="row"><code>${descriptor}</code><span class="minor">${domain} <span class="place">${breakable(source)}</span></span></th>
<td data-label="Limit">${limit}</td>
<td data-label="Fullness" class="fullness">${fullnessBar(figures)} ${live('full', figures)}</td>
${liveCell('Hits', 'hits', figures)}${liveCell('Over limit', 'over', figures)}</tr>
`;
}

/** Hidden from screen readers, because the text next to it says the same. */
function fullnessBar(figures: ReturnType<typeof limitFigures>): Markup {
  const { text, state } = figureOf('bar', figures);
  return html`<svg class="fullness-bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect class="background" width="100" height="10"/><rect data-figure="bar"${stateOf(state)} width="${text}" height="10"/></svg>`;
}

/** Renders a text that the script keeps up to date. */
export function live(name: string, figures: Figures): Markup {
  const { text, state } = figureOf(name, figures);
  return html`<span data-figure="${name}"${stateOf(state)}>${text}</span>`;
}

/** Renders a numeric table cell. `label` is the column heading, which is shown in the cell on narrow screens. */
function liveCell(label: string, name: string, figures: Figures): Markup {
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

function stateOf(state: string | undefined): Markup | undefined {
  return state === undefined ? undefined : html` data-state="${state}"`;
}
