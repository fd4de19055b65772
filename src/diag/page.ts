/** The diagnostics for people: one self-contained page without a script. */
import { contentSecurity, escapeHtml, type Formatter, htmlDocument } from '#http';
import type { Diagnostics } from './snapshot.ts';

const css = [
  ':root{color-scheme:light dark;font:15px/1.5 system-ui,sans-serif}',
  'body{max-width:80rem;margin:2rem auto;padding:0 1rem}',
  'section{overflow-x:auto}',
  'table{border-collapse:collapse;width:100%}',
  'th,td{text-align:left;padding:.35rem .75rem .35rem 0;border-bottom:1px solid color-mix(in srgb,currentColor 20%,transparent);vertical-align:top}',
  'code{font:.9em ui-monospace,monospace;overflow-wrap:anywhere}',
].join('');

export const diagnosticsFormatter: Formatter = {
  type: 'text/html',
  contentType: 'text/html; charset=utf-8',
  tag: 'html',
  headers: contentSecurity(css),
  format: (value, title) => (isDiagnostics(value) ? page(value, title) : ''),
};

function isDiagnostics(value: unknown): value is Diagnostics {
  return typeof value === 'object' && value !== null && 'routes' in value;
}

function page(diagnostics: Diagnostics, title: string): string {
  const { version, uptime_seconds, configuration, routes, services, limits, errors, notices, auth, ratelimit } =
    diagnostics;
  const sections = [
    section(
      'Health',
      [],
      ['Version', 'Uptime', 'Configuration', 'Hash', 'In force since', 'Configuration errors'],
      [
        [
          version,
          `${uptime_seconds} s`,
          `generation ${configuration.generation}`,
          configuration.hash,
          configuration.applied_at,
          errors.length,
        ],
      ],
    ),
    section(
      'Configuration errors',
      ['source', 'record', 'message', 'remedy'],
      ['Place', 'Record', 'Error', 'Remedy'],
      errors,
    ),
    section('Notices', ['source', 'record', 'message', 'remedy'], ['Place', 'Record', 'Notice', 'What to do'], notices),
    section(
      'Routes, in the order in which they are tried',
      [
        'prefix',
        'conditions',
        'name',
        'rewrite',
        'service',
        'target',
        'authenticated',
        'labels',
        'timeout_ms',
        'source',
      ],
      [
        'Prefix',
        'Conditions',
        'Mapping',
        'Rewrite',
        'Service',
        'Leads to',
        'Behind auth',
        'Labels',
        'Time-out (ms)',
        'Place',
      ],
      routes,
    ),
    section('Services', ['role', 'service', 'target'], ['Role', 'Service', 'Leads to'], services),
    section('Limits', ['domain', 'descriptor', 'limit', 'source'], ['Domain', 'Descriptor', 'Limit', 'Place'], limits),
    section('Auth answers', ['allowed', 'denied', 'error'], ['Allowed', 'Denied', 'No answer'], auth ? [auth] : []),
    section(
      'Rate-limit answers',
      ['ok', 'over', 'error'],
      ['OK', 'Over limit', 'No answer'],
      ratelimit ? [ratelimit] : [],
    ),
  ];
  return htmlDocument({ title, css, main: `<h1>${escapeHtml(title)}</h1>\n${sections.join('\n')}` });
}

/** A table under a heading; nothing at all when it has no rows. `names`: members of a row, empty for rows that are lists. */
function section(
  heading: string,
  names: readonly string[],
  titles: readonly string[],
  rows: readonly object[],
): string {
  if (rows.length === 0) return '';
  const head = titles.map((title) => `<th scope="col">${escapeHtml(title)}</th>`).join('');
  const body = rows.map((row) => `<tr>${cellsOf(row, names).map(cell).join('')}</tr>`).join('\n');
  return `<section><h2>${escapeHtml(heading)}</h2>\n<table><thead><tr>${head}</tr></thead>\n<tbody>${body}</tbody></table></section>`;
}

function cellsOf(row: object, names: readonly string[]): unknown[] {
  return Array.isArray(row) ? row : names.map((name) => (row as Record<string, unknown>)[name]);
}

function cell(value: unknown): string {
  return `<td>${value === undefined || value === '' ? '–' : `<code>${escapeHtml(String(value))}</code>`}</td>`;
}
