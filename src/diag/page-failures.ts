/** The last requests that failed, and why. */
import { html, type Markup } from '#http';
import { type Figures, failureFigures } from './browser/figures.js';
import type { Diagnostics } from './diagnostics.ts';
import { figureOf, live, time } from './page-cells.ts';

/** The script makes further rows of the template. */
export function failuresSection({ failures }: Diagnostics): Markup {
  return html`<section aria-labelledby="failures">
<h2 id="failures">Requests that failed</h2>
<p id="no-failures" class="hint"${failures.length > 0 && html` hidden`}>None since the start.</p>
<table id="failure-table"${failures.length === 0 && html` hidden`}>
<caption>Answered with 500 or more, the newest first</caption>
<thead><tr><th scope="col">When</th><th scope="col">Status</th><th scope="col">Request</th><th scope="col">Mapping</th><th scope="col">Why</th><th scope="col">Request id</th></tr></thead>
<tbody id="failure-rows">
${failures.map((failure) => failureRow(failureFigures(failure)))}</tbody>
</table>
<template id="failure-row">${failureRow({})}</template>
</section>`;
}

function failureRow(figures: Figures): Markup {
  const { text, href } = figureOf('problem', figures);
  const link = html`<a data-figure="problem"${href && html` href="${href}"`}>${text}</a>`;
  return html`<tr data-row>
<td class="short" data-label="When">${time(figureOf('at', figures).text, 'at')}</td>
<td class="short" data-label="Status">${live('status', figures)}</td>
<th scope="row">${live('method', figures)} <code data-figure="path">${figureOf('path', figures).text}</code></th>
<td class="short" data-label="Mapping">${live('mapping', figures)}</td>
<td data-label="Why">${link} ${live('reason', figures)}</td>
<td data-label="Request id"><code data-figure="request_id">${figureOf('request_id', figures).text}</code></td></tr>
`;
}
