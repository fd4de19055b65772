/** An explanation for people with a browser: a form, and the sections of the answer; no script. */
import type { Explanation } from '#gateway';
import type { Formatter } from '#http';
import { explanationSections, verdictOf } from './explain-sections.ts';
import { pageDocument, pageHeaders } from './page-document.ts';
import { explainForm } from './page-explain.ts';
import { html, type Markup } from './page-markup.ts';

/** What a page shows: the form as it was filled in, and the answer unless it was not yet sent. */
export interface AnsweredForm {
  readonly search: string;
  readonly explanation: Explanation | undefined;
}

/** Formats an `AnsweredForm`. */
export const explanationFormatter: Formatter = {
  type: 'text/html',
  contentType: 'text/html; charset=utf-8',
  tag: 'html',
  headers: pageHeaders,
  format: (value, title) => page(value as AnsweredForm, title),
};

function page({ search, explanation }: AnsweredForm, title: string): string {
  return pageDocument({
    title,
    heading: title,
    files: 'diag/',
    styles: ['colours.css', 'base.css', 'explain.css'],
    beside: html`<nav aria-label="Elsewhere"><a href="diag/">Diagnostics</a></nav>`,
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
