/** What routes resolve to: services across HTTP, each address with its health, and whom the records name. */
import { html, type Markup } from '#http';
import { clusterFigures } from './browser/figures.js';
import { shown } from './browser/shown.js';
import type { Structures } from './browser/structure.js';
import { countOf, countText } from './browser/words.js';
import type { ClusterRow, Diagnostics, ServiceRow } from './diagnostics.ts';
import { live, liveCell, part, unlisted } from './page-cells.ts';

export function targetsSection(diagnostics: Diagnostics, structures: Structures): Markup {
  return html`<section aria-labelledby="targets">
<h2 id="targets">What they resolve to</h2>
${part('clusters', structures.clusters, html`${clusterTable(diagnostics)}${serviceTable(diagnostics)}`)}
</section>`;
}

function clusterTable({ clusters, clusters_total: total }: Diagnostics): Markup {
  if (total === 0) return html`<p class="hint">All services run within this server.</p>`;
  return html`<table>
<caption>Services across HTTP</caption>
<thead><tr><th scope="col">Cluster</th><th scope="col">Addresses</th><th scope="col">Circuit</th><th scope="col" class="number">In flight</th><th scope="col" class="number">Refused by circuit</th><th scope="col">Mappings</th></tr></thead>
<tbody>
${shown(clusters).map(clusterRow)}</tbody>
</table>
${unlisted(shown(clusters).length, total, 'clusters')}`;
}

function clusterRow(cluster: ClusterRow): Markup {
  const { name, service, addresses, used, mappings, mappings_total: mappingsTotal } = cluster;
  const figures = clusterFigures(cluster);
  return html`<tr data-row>
<th scope="row">${name}${service !== name && html`<span class="minor">${service}</span>`}${!used && html`<span class="minor">not asked yet</span>`}</th>
<td data-label="Addresses"><ul class="plain">${addresses.map(({ origin }, index) => html`<li><code>${origin}</code> ${live(`health_${index}`, figures)}, ${live(`active_${index}`, figures)} in flight</li>`)}</ul></td>
<td data-label="Circuit">${live('circuit', figures)}</td>
${liveCell('In flight', 'active', figures)}${liveCell('Refused by circuit', 'overflows', figures)}
<td data-label="Mappings">${mappings.length === 0 ? '–' : mappings.join(', ')}${mappings.length < mappingsTotal && ` and ${countText(mappingsTotal - mappings.length)} more`}</td></tr>
`;
}

function serviceTable({ services, services_total: total }: Diagnostics): Markup {
  if (total === 0) return html``;
  return html`<details id="services"${total <= servicesOpenMax && html` open`}>
<summary>${countOf(total, 'service')} that records name</summary>
<table>
<thead><tr><th scope="col">Role</th><th scope="col">Service</th><th scope="col">Leads to</th></tr></thead>
<tbody>
${shown(services).map(serviceRow)}</tbody>
</table>
${unlisted(shown(services).length, total, 'services')}
</details>`;
}

const servicesOpenMax = 10;

function serviceRow({ role, service, target }: ServiceRow): Markup {
  return html`<tr><th scope="row">${role}</th><td data-label="Service"><code>${service}</code></td><td data-label="Leads to">${target}</td></tr>
`;
}
