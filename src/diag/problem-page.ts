/** A problem for people with a browser, and the list of all; no script. */
import { STATUS_CODES } from 'node:http';
import { type Formatter, html, htmlDocument, type Markup, pageHeaders, phraseMarkup, withHtmlPage } from '#http';

export interface ProblemPage {
  /** Its name, as the last part of its path and in the log: `not-found`. */
  readonly problem: string;
  readonly title: string;
  readonly status: number;
  readonly meaning: string;
  readonly remedy: string;
}

export interface ProblemIndex {
  /** In the order of their status. */
  readonly problems: readonly ProblemPage[];
}

const style = [
  ':root{color-scheme:light dark;background:Canvas;color:CanvasText;font:16px/1.5 system-ui,sans-serif}',
  'body{max-width:48rem;margin:2rem auto;padding:0 1rem}',
  'dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1rem}',
  'dt{font-weight:600}dd{margin:0}',
  'code{font:.9em ui-monospace,monospace;overflow-wrap:anywhere}',
].join('');

/** Format a `ProblemPage` or the `ProblemIndex`. */
export const problemPageFormatters: readonly Formatter[] = withHtmlPage((value, title) => {
  const shown = value as ProblemPage | ProblemIndex;
  return htmlDocument({ title, style, main: 'problems' in shown ? listOf(shown) : detailsOf(shown) });
}, pageHeaders({ style }));

function detailsOf({ problem, status, meaning, remedy }: ProblemPage): Markup {
  return html`<dl>
<dt>Problem</dt><dd><code>${problem}</code></dd>
<dt>Status</dt><dd>${status} ${STATUS_CODES[status]}</dd>
<dt>Meaning</dt><dd>${phraseMarkup(meaning)}</dd>
<dt>What to do</dt><dd>${phraseMarkup(remedy)}</dd>
</dl>
<p><a href="./">All problems</a></p>`;
}

function listOf({ problems }: ProblemIndex): Markup {
  const rows = problems.map(
    ({ problem, title, status, meaning }) =>
      html`<dt>${status}</dt><dd><a href="${problem}">${title}</a>: ${phraseMarkup(meaning)}</dd>\n`,
  );
  return html`<dl>\n${rows}</dl>`;
}
