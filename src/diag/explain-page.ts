/** An explanation for people with a browser: a form, and the sections of the answer; no script. */
import type { Explanation } from '#gateway';
import { contentSecurity, escapeHtml, type Formatter, htmlDocument } from '#http';
import { explanationSections, verdictOf } from './explain-sections.ts';

/** What a page shows: the form as it was filled in, and the answer unless it was not yet sent. */
export interface AnsweredForm {
  readonly search: string;
  readonly explanation: Explanation | undefined;
}

const css = [
  ':root{color-scheme:light dark;font:15px/1.5 system-ui,sans-serif}',
  'body{max-width:72rem;margin:2rem auto;padding:0 1rem}',
  'section{overflow-x:auto}',
  'form{display:flex;flex-wrap:wrap;gap:.5rem 1rem;align-items:end}label{display:grid;font-size:.85em}',
  'input{font:inherit}.verdict{font-size:1.15em;overflow-wrap:anywhere}',
  'table{border-collapse:collapse}',
  'td{padding:.15rem 1.25rem .15rem 0;vertical-align:top;font:.9em ui-monospace,monospace;overflow-wrap:anywhere}',
].join('');

/** Formats an `AnsweredForm`. */
export const explanationFormatter: Formatter = {
  type: 'text/html',
  contentType: 'text/html; charset=utf-8',
  tag: 'html',
  headers: contentSecurity(css, "'self'"),
  format: (value, title) => htmlDocument({ title, css, main: page(value as AnsweredForm, title) }),
};

function page({ search, explanation }: AnsweredForm, title: string): string {
  return [`<h1>${escapeHtml(title)}</h1>`, form(new URLSearchParams(search)), answer(explanation)].join('\n');
}

const emptyHeaders = 2;

function form(given: URLSearchParams): string {
  const headers = [...given.getAll('header').filter(Boolean), ...Array.from({ length: emptyHeaders }, () => '')];
  return [
    '<form method="get">',
    field('Method', 'method', given.get('method') ?? 'GET', 6),
    field('Path or URL', 'url', given.get('url') ?? '', 50),
    field('User', 'user', given.get('user') ?? '', 12),
    field('From address', 'from', given.get('from') ?? '', 14),
    ...headers.map((value) => field('Header (Name: value)', 'header', value, 30)),
    '<button>Explain</button>',
    '</form>',
  ].join('\n');
}

function field(label: string, name: string, value: string, size: number): string {
  return `<label>${label}<input name="${name}" value="${escapeHtml(value)}" size="${size}"></label>`;
}

function answer(explanation: Explanation | undefined): string {
  if (explanation === undefined) return '';
  const sections = explanationSections(explanation).map(({ heading, rows }) => {
    const body = rows.map((row) => `<tr>${row.map((cell) => `<td>${escapeHtml(cell)}</td>`).join('')}</tr>`);
    return `<section><h2>${escapeHtml(heading)}</h2>\n<table>${body.join('\n')}</table></section>`;
  });
  return [`<p class="verdict">${escapeHtml(verdictOf(explanation))}</p>`, ...sections].join('\n');
}
