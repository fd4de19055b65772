/** Which limits apply, and how full they are. */
import { html, type Markup } from '#http';
import { limitFigures } from './browser/figures.js';
import { shown } from './browser/shown.js';
import type { Structures } from './browser/structure.js';
import type { Diagnostics, LimitRow } from './diagnostics.ts';
import { breakable, figureOf, live, liveCell, part, stateOf, unlisted } from './page-cells.ts';

export function limitsSection(diagnostics: Diagnostics, structures: Structures): Markup {
  return html`<section aria-labelledby="limits">
<h2 id="limits">Limits</h2>
${part('limits', structures.limits, limitTable(diagnostics))}
</section>`;
}

function limitTable({ limits, limits_total: total }: Diagnostics): Markup {
  if (total === 0) return html`<p class="hint">No limits are configured here.</p>`;
  return html`<table>
<caption>How much of each its fullest counter has used; hits since the start</caption>
<thead><tr><th scope="col">Descriptor</th><th scope="col">Limit</th><th scope="col">Fullness</th><th scope="col" class="number">Hits</th><th scope="col" class="number">Over</th></tr></thead>
<tbody>
${shown(limits).map(limitRow)}</tbody>
</table>
${unlisted(shown(limits).length, total, 'limits')}`;
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

/** The text beside it says the same. */
function bar(figures: ReturnType<typeof limitFigures>): Markup {
  const { text, state } = figureOf('bar', figures);
  return html`<svg class="bar-of-100" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect class="ground" width="100" height="10"/><rect data-figure="bar"${stateOf(state)} width="${text}" height="10"/></svg>`;
}
