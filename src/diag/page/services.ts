/** Renders the tables of remote services, of services named in records, and of limits. */
import { html, type Markup } from '#http';
import { clusterFigures, limitFigures, type Structures } from '../browser/figures.js';
import { countOf, countText, visibleRows } from '../browser/format.js';
import type { ClusterRow, Diagnostics, LimitRow, ServiceRow } from '../diagnostics.ts';
import { breakable, figureOf, live, liveCell, part, partialListNote, stateOf } from './cells.ts';

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
