/** The diagnostics for people: one page that is whole without its script, which only keeps it up to date. */
import { type Formatter, html, htmlDocument, type Markup, pageHeaders, withHtmlPage } from '#http';
import { structuresOf } from './browser/structure.js';
import { verdictOf } from './browser/verdict.js';
import type { Diagnostics } from './diagnostics.ts';
import { time } from './page-cells.ts';
import { failuresSection } from './page-failures.ts';
import { healthSection } from './page-health.ts';
import { limitsSection } from './page-limits.ts';
import { routesSection } from './page-routes.ts';
import { targetsSection } from './page-targets.ts';

/** They format `Diagnostics`. `explainForm`: the form that asks what becomes of a request. */
export function createDiagnosticsFormatters(explainForm: Markup): readonly Formatter[] {
  return withHtmlPage(
    (value, title) => page(value as Diagnostics, title, explainForm),
    pageHeaders({ ownFiles: true }),
  );
}

function page(diagnostics: Diagnostics, title: string, explainForm: Markup): string {
  const structures = structuresOf(diagnostics);
  return htmlDocument({
    title: `${verdictOf(diagnostics).text} – ${title}`,
    heading: title,
    stylesheets: ['colours.css', 'base.css', 'health.css', 'rows.css', 'cards.css'],
    script: 'diagnostics.js',
    header: beside(diagnostics),
    main: html`${[
      healthSection(diagnostics, structures),
      routesSection(diagnostics, structures),
      targetsSection(diagnostics, structures),
      limitsSection(diagnostics, structures),
      html`<section aria-labelledby="explain">
<h2 id="explain">Explain a request</h2>
<p class="hint">What would become of it, without sending it to anybody.</p>
${explainForm}
</section>`,
      failuresSection(diagnostics),
    ]}`,
  });
}

const places = [
  ['routes', 'Routes'],
  ['targets', 'Services'],
  ['limits', 'Limits'],
  ['explain', 'Explain'],
  ['failures', 'Failures'],
] as const;

/** Without the script it is a picture of one moment. */
function beside({ at }: Diagnostics): Markup {
  return html`<nav aria-label="On this page">${places.map(([id, name]) => html`<a href="#${id}">${name}</a>`)}</nav>
<div class="connection"><p id="connection" role="status" data-state="still">Not live</p>
<p class="hint">as of ${time(at, 'taken')}</p>
<button id="pause" type="button" hidden>Pause</button></div>`;
}
