/** Renders the tables of remote services, of services that records name, and of limits. */
import { html, type Markup } from '#http';
import { clusterFigures, limitFigures, type Structures } from '../browser/figures.js';
import { countOf, countText, visibleRows } from '../browser/format.js';
import type { ClusterRow, Diagnostics, LimitRow, ServiceRow } from '../diagnostics.ts';
import { breakable, figureOf, live, liveCell, part, stateOf, unlisted } from './cells.ts';

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
<thead><tr><th scope="col">Cluster</th><th scope="col">Addresses</th><th scope="col">Circuit</th><th scope="col" class="number">In flight</th><th scope="col" class="number">Upgrades</th><th scope="col" class="number">Refused by circuit</th><th scope="col">Mappings</th></tr></thead>
<tbody>
${visibleRows(clusters).map(clusterRow)}</tbody>
</table>
${unlisted(visibleRows(clusters).length, total, 'clusters')}`;
}

function clusterRow(cluster: ClusterRow): Markup {
  const { name, service, addresses, used, mappings, mappings_total: mappingsTotal } = cluster;
  const figures = clusterFigures(cluster);
  return html`<tr data-row>
<th scope="row">${name}${service !== name && html`<span class="minor">${service}</span>`}${!used && html`<span class="minor">not used yet</span>`}</th>
<td data-label="Addresses"><ul class="plain">${addresses.map(({ origin }, index) => html`<li><code>${origin}</code> ${live(`health_${index}`, figures)}, ${live(`active_${index}`, figures)} in flight</li>`)}</ul></td>
<td data-label="Circuit">${live('circuit', figures)}</td>
${liveCell('In flight', 'active', figures)}${liveCell('Upgrades', 'upgrades', figures)}${liveCell('Refused by circuit', 'overflows', figures)}
<td data-label="Mappings">${mappings.length === 0 ? '–' : mappings.join(', ')}${mappings.length < mappingsTotal && ` and ${countText(mappingsTotal - mappings.length)} more`}</td></tr>
`;
}

function serviceTable({ services, services_total: total }: Diagnostics): Markup {
  if (total === 0) return html``;
  return html`<details id="services"${total <= servicesOpenMax && html` open`}>
<summary>${countOf(total, 'service')} that records name</summary>
<table>
<thead><tr><th scope="col">Role</th><th scope="col">Service</th><th scope="col">Target</th></tr></thead>
<tbody>
${visibleRows(services).map(serviceRow)}</tbody>
</table>
${unlisted(visibleRows(services).length, total, 'services')}
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
<caption>The fullness is that of the fullest counter of each limit. Hits are counted since the start.</caption>
<thead><tr><th scope="col">Descriptor</th><th scope="col">Limit</th><th scope="col">Fullness</th><th scope="col" class="number">Hits</th><th scope="col" class="number">Over</th></tr></thead>
<tbody>
${visibleRows(limits).map(limitRow)}</tbody>
</table>
${unlisted(visibleRows(limits).length, total, 'limits')}`;
}

function limitRow(row: LimitRow): Markup {
  const { domain, descriptor, limit, source } = row;
  const figures = limitFigures(row);
  return html`<tr data-row>
<th scope="row"><code>${descriptor}</code><span class="minor">${domain} <span class="place">${breakable(source)}</span></span></th>
<td data-label="Limit">${limit}</td>
<td data-label="Fullness" class="fullness">${bar(figures)} ${live('full', figures)}</td>
${liveCell('Hits', 'hits', figures)}${liveCell('Over', 'over', figures)}</tr>
`;
}

/** Hidden from screen readers, because the text next to it says the same. */
function bar(figures: ReturnType<typeof limitFigures>): Markup {
  const { text, state } = figureOf('bar', figures);
  return html`<svg class="bar-of-100" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect class="ground" width="100" height="10"/><rect data-figure="bar"${stateOf(state)} width="${text}" height="10"/></svg>`;
}
