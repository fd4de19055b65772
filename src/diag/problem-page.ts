/** A problem for people with a browser, and the list of all; no script. */
import { STATUS_CODES } from 'node:http';
import { contentSecurity, escapeHtml, type Formatter, htmlDocument } from '#http';

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

const css = [
  ':root{color-scheme:light dark;background:Canvas;color:CanvasText;font:16px/1.5 system-ui,sans-serif}',
  'body{max-width:48rem;margin:2rem auto;padding:0 1rem}',
  'dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1rem}',
  'dt{font-weight:600}dd{margin:0}',
  'code{font:.9em ui-monospace,monospace;overflow-wrap:anywhere}',
].join('');

/** Formats a `ProblemPage` or the `ProblemIndex`. */
export const problemPageFormatter: Formatter = {
  type: 'text/html',
  contentType: 'text/html; charset=utf-8',
  tag: 'html',
  headers: contentSecurity(css),
  format: (value, title) => {
    const shown = value as ProblemPage | ProblemIndex;
    const main = 'problems' in shown ? listOf(shown) : detailsOf(shown);
    return htmlDocument({ title, css, main: `<h1>${escapeHtml(title)}</h1>\n${main}` });
  },
};

function detailsOf({ problem, status, meaning, remedy }: ProblemPage): string {
  return `<dl>
<dt>Problem</dt><dd><code>${problem}</code></dd>
<dt>Status</dt><dd>${statusText(status)}</dd>
<dt>Meaning</dt><dd>${prose(meaning)}</dd>
<dt>What to do</dt><dd>${prose(remedy)}</dd>
</dl>
<p><a href="./">All problems</a></p>`;
}

function listOf({ problems }: ProblemIndex): string {
  const rows = problems.map(
    ({ problem, title, status, meaning }) =>
      `<dt>${status}</dt><dd><a href="${problem}">${escapeHtml(title)}</a>: ${prose(meaning)}</dd>`,
  );
  return `<dl>\n${rows.join('\n')}\n</dl>`;
}

function statusText(status: number): string {
  return escapeHtml(`${status} ${STATUS_CODES[status] ?? ''}`);
}

/** What the table has between backticks is code. */
function prose(text: string): string {
  return escapeHtml(text).replace(/`([^`]*)`/g, '<code>$1</code>');
}
