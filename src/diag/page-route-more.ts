/** What is told of a route when somebody asks: what its record says, and its totals since the start. */
import { html, type Markup } from '#http';
import type { Figures } from './browser/figures.js';
import { countText } from './browser/words.js';
import type { RouteRow } from './diagnostics.ts';
import { live } from './page-cells.ts';

/** `key`: what it is known again by; `summary`: what is to be seen without asking; `terms`: of a description list. */
export function more(key: string, summary: Markup, terms: Markup): Markup {
  return html`<details id="more-${key.replaceAll(/\s/g, '-')}"><summary>${summary}</summary><dl>${terms}</dl></details>`;
}

export function routeTerms(route: RouteRow, figures: Figures): Markup {
  const {
    name,
    prefix,
    conditions,
    rewrite,
    service,
    authenticated,
    labels,
    timeout_ms: timeoutMs,
    cluster,
    traffic,
  } = route;
  return html`${[
    term('Name', name),
    service !== '' && term('Service', html`<code>${service}</code>`),
    term('Rewrite', rewrite === '' ? 'none' : html`<code>${rewrite}</code>`),
    term('Behind auth', authenticated ? 'yes' : 'no'),
    labels.length > 0 && term('Labels', labels.join(', ')),
    timeoutMs !== undefined && term('Time-out', timeoutMs === 0 ? 'none' : `${countText(timeoutMs)} ms`),
    cluster !== undefined && term('Cluster', html`<code>${cluster}</code>`),
    totals(figures),
    traffic.upstream !== undefined && attempts(figures),
    !conditions.includes('regex') && explainTerm(prefix),
  ]}`;
}

function explainTerm(prefix: string): Markup {
  const query = String(new URLSearchParams({ method: 'GET', url: prefix }));
  return term('Explain', html`<a href="../explain?${query}">GET ${prefix}</a>`);
}

export function totals(figures: Figures): Markup {
  return html`${term('Since the start', html`${live('total', figures)} requests`)}${[
    term('In flight', live('in_flight', figures)),
    term('Answered with 5xx', live('total_errors', figures)),
    term('Refused by auth', live('total_auth', figures)),
    term('Refused by limit', live('total_limit', figures)),
    term('Client left', live('abandoned', figures)),
  ]}`;
}

function attempts(figures: Figures): Markup {
  return html`${[
    term('Tried again', live('retries', figures)),
    term('Not reached', live('unavailable', figures)),
    term('Broke off', live('failed', figures)),
    term('Too slow', live('timeout', figures)),
    term('Overloaded', live('overloaded', figures)),
  ]}`;
}

function term(name: string, content: Markup | string): Markup {
  return html`<div><dt>${name}</dt><dd>${content}</dd></div>`;
}
