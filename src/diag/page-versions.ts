/** Which versions of the API are on their way out, and until when. */
import { html, type Markup } from '#http';
import { shown } from './browser/shown.js';
import type { Structures } from './browser/structure.js';
import { timeText } from './browser/words.js';
import type { Diagnostics, VersionRow } from './diagnostics.ts';
import { breakable, part } from './page-cells.ts';

/** Most desks have no record of one, and then nothing is said. */
export function versionsPart({ versions }: Diagnostics, { versions: structure }: Structures): Markup {
  return part('versions', structure, versions.length === 0 ? html`` : versionTable(versions));
}

function versionTable(versions: readonly VersionRow[]): Markup {
  return html`<table>
<caption>Versions of the API that are on their way out</caption>
<thead><tr><th scope="col">Version</th><th scope="col">Deprecated from</th><th scope="col">Answers 410 from</th><th scope="col">Successor</th></tr></thead>
<tbody>
${shown(versions).map(versionRow)}</tbody>
</table>`;
}

function versionRow({ name, prefix, deprecation, sunset, successor, source }: VersionRow): Markup {
  return html`<tr data-row>
<th scope="row"><code>${prefix}</code><span class="minor">${name} <span class="place">${breakable(source)}</span></span></th>
<td data-label="Deprecated from">${deprecation === undefined ? '–' : timeText(deprecation)}</td>
<td data-label="Answers 410 from">${sunset === undefined ? '–' : timeText(sunset)}</td>
<td data-label="Successor">${successor === undefined ? '–' : html`<code>${breakable(successor)}</code>`}</td></tr>
`;
}
