/** The endpoint `/gateway/v0/diag/`: the diagnostics as HTML, JSON or YAML. The page works without its script. */
import type { InternalRoute } from '#gateway';
import {
  acceptRead,
  createRepresentations,
  type Formatter,
  html,
  htmlDocument,
  type Markup,
  pageHeaders,
  readPageFiles,
  redirectTo,
  requestContext,
  sendTagged,
  withHtmlPage,
} from '#http';
import {
  type Figures,
  failureFigures,
  type Structures,
  structuresOf,
  summaryFigures,
  unmatchedFigures,
} from './browser/figures.js';
import { countOf, visibleRows } from './browser/format.js';
import { verdictOf } from './browser/verdict.js';
import type { Diagnostics, ErrorRow, UnmatchedRow } from './diagnostics.ts';
import { type DiagnosticsParts, parseFilter, readDiagnostics } from './snapshot.ts';
import {
  breakable,
  figureOf,
  limitsSection,
  live,
  part,
  partialListNote,
  routesSection,
  sparkline,
  targetsSection,
  time,
} from './tables.ts';

const prefix = '/gateway/v0/diag';

/** Requires an administrator. The page contains the `explainForm`. */
export function createDiagnostics(parts: DiagnosticsParts, explainForm: Markup): InternalRoute {
  const representations = createRepresentations(createDiagnosticsFormatters(explainForm));
  const files = readPageFiles(new URL('./browser/', import.meta.url), fileNames);
  return {
    name: 'diagnostics',
    prefix,
    forAdmins: true,
    async run(ctx) {
      if (ctx.path === prefix) return redirectTo(ctx, `${requestContext(ctx).basePath}${prefix}/${ctx.search}`);
      const file = files.get(ctx.path.slice(prefix.length + 1));
      if (!acceptRead(ctx, file === undefined ? `${prefix}/` : ctx.path)) return;
      if (file !== undefined) return sendTagged(ctx, file);
      const filter = parseFilter(ctx.search);
      const { contentType, headers, format } = representations.choose(ctx.req.headers.accept);
      const diagnostics = readDiagnostics(parts, filter);
      ctx.vary('Accept');
      ctx.set({ ...headers, 'Cache-Control': 'no-store', 'Content-Type': contentType });
      ctx.body = format(diagnostics, 'frontdesk diagnostics');
    },
  };
}

/** The static files of the page. */
export const fileNames = [
  ...['diagnostics.css', 'explain.css'],
  ...['diagnostics.js', 'connection.js', 'display.js', 'figures.js', 'format.js', 'verdict.js'],
] as const;

/** Creates the formatters for `Diagnostics`. The page contains the `explainForm`. */
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
    stylesheets: ['diagnostics.css'],
    script: 'diagnostics.js',
    header: pageHeader(diagnostics),
    main: html`${[
      healthSection(diagnostics, structures),
      html`<section aria-labelledby="explain">
<h2 id="explain">Explain a request</h2>
<p class="hint">Shows how the gateway would handle a request, without sending it.</p>
${explainForm}
</section>`,
      routesSection(diagnostics, structures),
      targetsSection(diagnostics, structures),
      limitsSection(diagnostics, structures),
      html`<section aria-labelledby="unmatched">
<h2 id="unmatched">Requests without a route</h2>
${part('unmatched', structures.unmatched, unmatchedTable(diagnostics))}
</section>`,
      failuresSection(diagnostics),
    ]}`,
  });
}

const sectionLinks = [
  ['explain', 'Explain'],
  ['routes', 'Routes'],
  ['targets', 'Services'],
  ['limits', 'Limits'],
  ['unmatched', 'No route'],
  ['failures', 'Failures'],
] as const;

/** Without the script the page is not live, so the header shows the time of the snapshot. */
function pageHeader({ at }: Diagnostics): Markup {
  return html`<nav aria-label="On this page">${sectionLinks.map(([id, name]) => html`<a href="#${id}">${name}</a>`)}</nav>
<div class="connection"><p id="connection" role="status">Not live</p>
<p class="hint">as of ${time(at, 'snapshot')}</p>
<button id="pause" type="button" hidden>Pause</button></div>`;
}

function healthSection(diagnostics: Diagnostics, structures: Structures): Markup {
  const { state, text } = verdictOf(diagnostics);
  const { summary, errors } = structures;
  return html`<section aria-labelledby="health">
<h2 id="health" class="visually-hidden">Health</h2>
<p id="verdict" class="verdict" role="status" data-state="${state}">${text}</p>
${part('errors', errors, html`${errorList(diagnostics)}${noticeList(diagnostics)}`)}
${part('summary', summary, summaryTiles(diagnostics))}
</section>`;
}

function errorList({ errors, errors_total: total, routes }: Diagnostics): Markup {
  if (total === 0) return html``;
  return html`<section aria-labelledby="errors" class="issues" data-state="error">
<h3 id="errors">${countOf(total, 'configuration error')}</h3>
<p>These records keep their previous version or are not served. All other records are in use.</p>
<ul>${visibleRows(errors).map((error) => errorItem(error, routes))}</ul>
${partialListNote(visibleRows(errors).length, total, 'errors')}
</section>`;
}

function noticeList({ notices, notices_total: total, routes }: Diagnostics): Markup {
  if (total === 0) return html``;
  return html`<details class="issues" data-state="warning" id="notices"${total <= noticesOpenMax && html` open`}>
<summary>${countOf(total, 'notice')}: valid, but perhaps not what you meant</summary>
<ul>${visibleRows(notices).map((notice) => errorItem(notice, routes))}</ul>
${partialListNote(visibleRows(notices).length, total, 'notices')}
</details>`;
}

const noticesOpenMax = 3;

function errorItem({ source, record, message, remedy }: ErrorRow, routes: Diagnostics['routes']): Markup {
  const route = visibleRows(routes).findIndex(({ name, internal }) => !internal && `Mapping ${name}` === record);
  const named = route < 0 ? record : html`<a href="#route-${route}">${record}</a>`;
  return html`<li><p class="place"><code>${breakable(source)}</code>${record !== undefined && html` <span>${named}</span>`}</p>
<p class="message">${message}</p>
<p class="remedy"><span class="visually-hidden">What to do: </span>${remedy}</p></li>
`;
}

function summaryTiles(diagnostics: Diagnostics): Markup {
  const { version, configuration, routes, routes_total: total, auth, ratelimit } = diagnostics;
  const figures = summaryFigures(diagnostics);
  const trafficTitle = routes.length < total ? 'Traffic of the routes listed here' : 'Traffic';
  return html`<dl class="tiles" data-row>
<div class="wide"><dt>${trafficTitle}</dt><dd><span class="large">${live('rate', figures)}</span> requests/s, ${live('errors', figures)} errors, ${live('in_flight', figures)} in flight ${sparkline(figures)}</dd></div>
<div><dt>Configuration</dt><dd><span class="large">generation ${configuration.generation}</span> <code>${configuration.hash}</code><br>applied ${time(configuration.applied_at)}</dd></div>
<div><dt>Version</dt><dd><span class="large">${version}</span><br>up for ${live('uptime', figures)}</dd></div>
${auth !== undefined && html`<div><dt>Auth decisions</dt><dd>${live('auth_allowed', figures)} allowed<br>${live('auth_denied', figures)} denied<br>${live('auth_error', figures)} failed</dd></div>`}
${ratelimit !== undefined && html`<div><dt>Rate-limit decisions</dt><dd>${live('limit_ok', figures)} within the limits<br>${live('limit_over', figures)} over a limit<br>${live('limit_error', figures)} failed</dd></div>`}
</dl>`;
}

function unmatchedTable({ unmatched_requests: rows }: Diagnostics): Markup {
  if (rows.length === 0) return html`<p class="hint">None since the start.</p>`;
  return html`<table>
<caption>The gateway responded with 404, latest first. Each link explains why no route matched.</caption>
<thead><tr><th scope="col">Last</th><th scope="col">Request</th><th scope="col" class="number">Requests</th></tr></thead>
<tbody>
${rows.map(unmatchedTableRow)}</tbody>
</table>`;
}

function unmatchedTableRow(row: UnmatchedRow): Markup {
  const { method, path } = row;
  const figures = unmatchedFigures(row);
  const explanation = `../explain?${new URLSearchParams({ method, url: path })}`;
  return html`<tr data-row>
<td class="short" data-label="Last">${time(figureOf('at', figures).text, 'at')}</td>
<th scope="row">${method} <a href="${explanation}"><code>${breakable(path)}</code></a></th>
<td class="number" data-label="Requests">${live('requests', figures)}</td></tr>
`;
}

/** The script clones the template for new rows. */
function failuresSection({ failures }: Diagnostics): Markup {
  return html`<section aria-labelledby="failures">
<h2 id="failures">Failed requests</h2>
<p id="no-failures" class="hint"${failures.length > 0 && html` hidden`}>None since the start.</p>
<table id="failure-table"${failures.length === 0 && html` hidden`}>
<caption>Responses with status 500 or more, newest first</caption>
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
