/** Whether all is well: a verdict in words, what is in force, and each error with its place and its remedy. */
import { html, type Markup } from '#http';
import { summaryFigures } from './browser/figures.js';
import { shown } from './browser/shown.js';
import type { Structures } from './browser/structure.js';
import { verdictOf } from './browser/verdict.js';
import { countOf } from './browser/words.js';
import type { Diagnostics, ErrorRow } from './diagnostics.ts';
import { breakable, live, part, sparkline, time, unlisted } from './page-cells.ts';

export function healthSection(diagnostics: Diagnostics, structures: Structures): Markup {
  const { state, text } = verdictOf(diagnostics);
  const { facts, errors } = structures;
  return html`<section aria-labelledby="health">
<h2 id="health" class="unseen">Is it well?</h2>
<p id="verdict" class="verdict" role="status" data-state="${state}">${text}</p>
${part('errors', errors, html`${errorList(diagnostics)}${noticeList(diagnostics)}`)}
${part('facts', facts, factsList(diagnostics))}
</section>`;
}

function errorList({ errors, errors_total: total, routes }: Diagnostics): Markup {
  if (total === 0) return html``;
  return html`<section aria-labelledby="errors" class="trouble" data-state="ill">
<h3 id="errors">${countOf(total, 'configuration error')}</h3>
<p>What is named here is as it was before, or not served; the rest is in force.</p>
<ul>${shown(errors).map((error) => errorItem(error, routes))}</ul>
${unlisted(shown(errors).length, total, 'errors')}
</section>`;
}

function noticeList({ notices, notices_total: total, routes }: Diagnostics): Markup {
  if (total === 0) return html``;
  return html`<details class="trouble" data-state="watch" id="notices"${total <= noticesOpenMax && html` open`}>
<summary>${countOf(total, 'notice')}: right, and yet perhaps not what was meant</summary>
<ul>${shown(notices).map((notice) => errorItem(notice, routes))}</ul>
${unlisted(shown(notices).length, total, 'notices')}
</details>`;
}

const noticesOpenMax = 3;

function errorItem({ source, record, message, remedy }: ErrorRow, routes: Diagnostics['routes']): Markup {
  const route = shown(routes).findIndex(({ name, internal }) => !internal && `Mapping ${name}` === record);
  const named = route < 0 ? record : html`<a href="#route-${route}">${record}</a>`;
  return html`<li><p class="place"><code>${breakable(source)}</code>${record !== undefined && html` <span>${named}</span>`}</p>
<p class="message">${message}</p>
<p class="remedy"><span class="unseen">What to do: </span>${remedy}</p></li>
`;
}

function factsList(diagnostics: Diagnostics): Markup {
  const { version, configuration, routes, routes_total: total, auth, ratelimit } = diagnostics;
  const figures = summaryFigures(diagnostics);
  const which = routes.length < total ? 'Traffic of the routes listed here' : 'Traffic';
  return html`<dl class="facts" data-row>
<div class="wide"><dt>${which}</dt><dd><span class="large">${live('rate', figures)}</span> requests/s, ${live('errors', figures)} errors, ${live('in_flight', figures)} in flight ${sparkline(figures)}</dd></div>
<div><dt>Configuration</dt><dd><span class="large">generation ${configuration.generation}</span> <code>${configuration.hash}</code><br>applied ${time(configuration.applied_at)}</dd></div>
<div><dt>Version</dt><dd><span class="large">${version}</span><br>up for ${live('uptime', figures)}</dd></div>
${auth !== undefined && html`<div><dt>Auth answers</dt><dd>${live('auth_allowed', figures)} allowed<br>${live('auth_denied', figures)} denied<br>${live('auth_error', figures)} without an answer</dd></div>`}
${ratelimit !== undefined && html`<div><dt>Rate-limit answers</dt><dd>${live('limit_ok', figures)} within<br>${live('limit_over', figures)} over<br>${live('limit_error', figures)} without an answer</dd></div>`}
</dl>`;
}
