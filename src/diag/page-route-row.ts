/** One route: what it asks of a request, where it leads, and its figures. */
import { html, type Markup } from '#http';
import { type Figures, routeFigures } from './browser/figures.js';
import type { RouteRow } from './diagnostics.ts';
import { breakable, live, liveCell, sparkline } from './page-cells.ts';
import { more, routeTerms } from './page-route-more.ts';

export function routeRow(route: RouteRow, index: number): Markup {
  const { name, prefix, conditions, target, source, internal } = route;
  const figures = routeFigures(route);
  return html`<tr data-row id="route-${index}"${internal && html` class="built-in"`}>
<th scope="row"><code class="path">${prefix}</code>${conditions.map((condition) => html` <span class="chip">${condition}</span>`)}${internal ? html` <span class="chip">built in</span>` : html`<span class="minor">${name} <span class="place">${source && breakable(source)}</span></span>`}</th>
<td class="to">${more(`${name}${prefix}`, html`${live('health', figures)} <span class="target">${target}</span>`, routeTerms(route, figures))}</td>
${figureCells(figures)}</tr>
`;
}

/** From the sparkline on. */
export function figureCells(figures: Figures): Markup {
  return html`<td class="picture" data-label="Five minutes">${sparkline(figures)}</td>${[
    liveCell('Req/s', 'rate', figures),
    liveCell('Errors', 'errors', figures),
    liveCell('p50', 'p50', figures),
    liveCell('p99', 'p99', figures),
    liveCell('Refused by auth', 'auth', figures),
    liveCell('Refused by limit', 'limit', figures),
  ]}`;
}
