/** An explanation for people with a browser: a form, and the sections of the answer; no script. */
import type { Explanation } from '#gateway';
import { type Formatter, html, htmlDocument, type Markup, pageHeaders, withHtmlPage } from '#http';
import { explanationSections, verdictOf } from './explain-sections.ts';
import { explainForm } from './page-explain.ts';

/** What a page shows: the form as it was filled in, and the answer unless it was not yet sent. */
export interface AnsweredForm {
  readonly search: string;
  readonly explanation: Explanation | undefined;
}

/** The one for people formats an `AnsweredForm`. */
export const explanationFormatters: readonly Formatter[] = withHtmlPage(
  (value, title) => page(value as AnsweredForm, title),
  pageHeaders({ ownFiles: true }),
);

function page({ search, explanation }: AnsweredForm, title: string): string {
  return htmlDocument({
    title,
    stylesheets: ['diag/colours.css', 'diag/base.css', 'diag/explain.css'],
    header: html`<nav aria-label="Elsewhere"><a href="diag/">Diagnostics</a></nav>`,
    main: html`${explainForm('explain', new URLSearchParams(search))}${explanation !== undefined && answer(explanation)}`,
  });
}

function answer(explanation: Explanation): Markup {
  return html`<p class="verdict" data-outcome="${explanation.outcome.kind}">${verdictOf(explanation)}</p>
${explanationSections(explanation).map(
  ({ heading, rows }) => html`<section><h2>${heading}</h2>
<table>${rows.map((row) => html`<tr>${row.map((cell) => html`<td>${cell}</td>`)}</tr>\n`)}</table></section>
`,
)}`;
}
