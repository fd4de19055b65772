/** Describes the tables of routes and of API versions. */
import {
  breakable,
  cell,
  chart,
  code,
  explanationOf,
  figure,
  heading,
  numberCell,
  numberHeading,
  origin,
  rowHeading,
  table,
} from './cells.js';
import { disclosure, h } from './elements.js';
import { countFigure, durationFigure, errorFigure, rateFigure, routeHealthFigure } from './figures.js';
import { countOf, countText, rowsShownMax, timeText, visibleRows } from './format.js';

/** @typedef {import('../diagnostics.ts').Diagnostics} Diagnostics */
/** @typedef {import('../diagnostics.ts').RouteRow} RouteRow */
/** @typedef {import('../diagnostics.ts').TrafficRow} TrafficRow */
/** @typedef {import('./elements.js').Content} Content */

/**
 * Lists what clients call first: the routes of records and the API versions. The pages and probes of the gateway are
 * collapsed unless there is a filter, which may select them. Hides the routes that do not contain the text.
 * @param {Diagnostics} diagnostics
 * @param {string} text in lower case
 * @returns {Content}
 */
export function routeTables(diagnostics, text) {
  const { routes, unmatched, filter } = diagnostics;
  const numbered = visibleRows(routes).map((route, index) => ({ route, index }));
  const rowsOf = (/** @type {typeof numbered} */ some) => some.map(({ route, index }) => routeRow(route, index, text));
  const own = numbered.filter(({ route }) => isOwnPage(route));
  return [
    pageLinks(diagnostics),
    routeTable('In matching order. The figures cover the last five minutes, the requests per second the last minute.', [
      rowsOf(numbered.filter(({ route }) => !isOwnPage(route))),
      noRouteRow(unmatched, text),
    ]),
    own.length > 0 &&
      disclosure(
        { id: 'built-in', open: filter === '' ? undefined : '' },
        [`${countOf(own.length, 'built-in route')}: pages and probes of the gateway`],
        () => routeTable('They are matched together with the others, the longest prefix first.', rowsOf(own)),
      ),
  ];
}

/** @param {RouteRow} route */
function isOwnPage({ internal, prefix }) {
  return internal && prefix.startsWith('/gateway/');
}

/** Says how many routes the text selects, or without one, the filter of the query. @param {Diagnostics} diagnostics @param {string} text */
export function routeCount({ routes, routes_matching, routes_total }, text) {
  if (text === '') return `${countText(routes_matching)} of ${countText(routes_total)} routes`;
  const rows = visibleRows(routes);
  return `${countText(rows.filter((route) => containsText(route, text)).length)} of ${countOf(rows.length, 'route')} shown`;
}

/** Whether the text is in what the row shows, apart from figures. @param {RouteRow} route @param {string} text */
function containsText(route, text) {
  const { name, prefix, conditions, target, source = '', health } = route;
  const shown = [prefix, ...conditions, name, source, accessText(route), routeHealthFigure(health).text, target];
  return shown.join(' ').toLowerCase().includes(text);
}

/**
 * Links to the previous and the next routes if not all fit on this page.
 * @param {Diagnostics} diagnostics
 */
function pageLinks({ filter, offset, routes, routes_matching: matching }) {
  const count = visibleRows(routes).length;
  const at = (/** @type {number} */ from) =>
    `?${new URLSearchParams({ ...(filter && { filter }), offset: String(from) })}`;
  const range = count === 0 ? 'None' : `${countText(offset + 1)} to ${countText(offset + count)}`;
  return (
    count < matching &&
    h(
      'nav',
      { class: 'pages', 'aria-label': 'Pages of routes' },
      h(
        'p',
        {},
        `${range} of ${countText(matching)} routes are shown. Enter a filter and press Return to find others.`,
      ),
      offset > 0 && h('a', { rel: 'prev', href: at(Math.max(0, offset - rowsShownMax)) }, 'Previous'),
      offset + count < matching && h('a', { rel: 'next', href: at(offset + count) }, 'Next'),
    )
  );
}

/** The columns of numbers: the title, and the name of the figure. */
const numbers = Object.freeze({
  'Req/s': 'rate',
  Errors: 'errors',
  p50: 'p50',
  p99: 'p99',
});

/** @param {string} caption @param {Content} rows */
function routeTable(caption, rows) {
  const columns = [['Route', 'Protection', 'Target', 'Traffic'].map(heading), Object.keys(numbers).map(numberHeading)];
  return table({ caption, columns, rows, attributes: { class: 'routes' } });
}

/** @param {RouteRow} route @param {number} index @param {string} text */
function routeRow(route, index, text) {
  const { name, prefix, conditions, target, source, health, traffic } = route;
  return h(
    'tr',
    {
      'data-key': `${name} ${prefix}`,
      id: `route-${index}`,
      class: isOwnPage(route) ? 'built-in' : undefined,
      hidden: containsText(route, text) ? undefined : '',
    },
    rowHeading(
      h('code', { class: 'path' }, prefix),
      conditions.map((condition) => [' ', h('span', { class: 'chip' }, condition)]),
      origin(name, source),
    ),
    cell('Protection', protectionOf(route)),
    targetCell([figure('health', routeHealthFigure(health)), ' ', h('span', { class: 'target' }, target)], () =>
      routeTerms(route),
    ),
    trafficCells(traffic),
  );
}

/** @param {readonly Content[]} summary @param {() => Content} terms */
function targetCell(summary, terms) {
  return h(
    'td',
    { class: 'target-cell' },
    disclosure({}, summary, () => h('dl', {}, terms())),
  );
}

const limitsShownMax = 3;

/** Who may pass, which limits count them, and how many were rejected. @param {RouteRow} route @returns {Content} */
function protectionOf(route) {
  const { addresses, labels, limits, limits_total, traffic } = route;
  const shown = limits.slice(0, limitsShownMax);
  const further = limits_total - shown.length;
  return [
    figure('access', { text: accessText(route), state: route.authenticated ? 'ok' : 'none' }),
    addresses !== '' && h('span', { class: 'minor' }, addresses),
    shown.map(({ descriptor, limit }) => h('span', { class: 'minor' }, code(descriptor), `: ${limit}`)),
    further > 0 && h('span', { class: 'minor' }, countOf(further, 'more limit', 'more limits')),
    limits_total === 0 && labels.length > 0 && h('span', { class: 'minor' }, `counted by ${labels.join(', ')}`),
    rejected('address', traffic.recent?.refused_by_address),
    rejected('auth', traffic.recent?.refused_by_auth),
    rejected('limit', traffic.recent?.refused_by_limit),
  ];
}

/** @param {'address' | 'auth' | 'limit'} by @param {number | undefined} count */
function rejected(by, count = 0) {
  return count > 0 && h('span', { class: 'minor' }, figure(by, countFigure(count)), ` rejected by ${by}`);
}

/** @param {RouteRow} route */
function accessText({ auth, admins_only }) {
  if (auth === undefined) return 'open';
  return admins_only ? `administrators of AuthService ${auth}` : `AuthService ${auth}`;
}

/** @param {TrafficRow} unmatched @param {string} text */
function noRouteRow(unmatched, text) {
  return h(
    'tr',
    { 'data-key': 'no-route', class: 'built-in', hidden: 'no route'.includes(text) ? undefined : '' },
    rowHeading('No route'),
    cell('Protection', '–'),
    targetCell(['404 response'], () => totals(unmatched)),
    trafficCells(unmatched),
  );
}

/** @param {TrafficRow} traffic @returns {Content} */
function trafficCells({ recent }) {
  const figures = [
    rateFigure(recent),
    errorFigure(recent?.error_share),
    durationFigure(recent?.p50_ms),
    durationFigure(recent?.p99_ms),
  ];
  const cells = Object.entries(numbers).map(([title, name], index) =>
    numberCell(title, name, figures[index] ?? countFigure(undefined)),
  );
  return [h('td', {}, chart(recent)), cells];
}

/** @param {RouteRow} route @returns {Content} */
function routeTerms(route) {
  const { name, prefix, conditions, rewrite, service, labels, timeout_ms, compressed, cluster, traffic } = route;
  const { refusal, fault } = route;
  return [
    term('Name', name),
    refusal !== undefined && term('Answers 503', refusal),
    refusal === undefined && fault !== undefined && term('Answers 500', fault),
    service !== '' && term('Service', code(service)),
    term('Rewrite', rewrite === '' ? 'none' : code(rewrite)),
    labels.length > 0 && term('Labels', labels.join(', ')),
    timeout_ms !== undefined && term('Time-out', timeout_ms === 0 ? 'none' : `${countText(timeout_ms)} ms`),
    compressed && term('Compression', 'for clients that accept it'),
    cluster !== undefined && term('Cluster', code(cluster)),
    totals(traffic),
    !conditions.includes('regex') && term('Explain', h('a', { href: explanationOf('GET', prefix) }, `GET ${prefix}`)),
  ];
}

/** @param {TrafficRow} traffic @returns {Content} */
function totals(traffic) {
  const { requests, in_flight, errors, refused_by_address, refused_by_auth, refused_by_limit, abandoned, upstream } =
    traffic;
  return [
    term('Since the start', figure('total', countFigure(requests)), ' requests'),
    term('In flight', figure('in_flight', countFigure(in_flight))),
    term('5xx responses', figure('total_errors', countFigure(errors, 'warning'))),
    term('Rejected by address', figure('total_address', countFigure(refused_by_address))),
    term('Rejected by auth', figure('total_auth', countFigure(refused_by_auth))),
    term('Rejected by limit', figure('total_limit', countFigure(refused_by_limit))),
    term('Client disconnected', figure('abandoned', countFigure(abandoned))),
    upstream && [
      term('Retries', figure('retries', countFigure(upstream.retries))),
      term('Unavailable', figure('unavailable', countFigure(upstream.unavailable, 'warning'))),
      term('Failed', figure('failed', countFigure(upstream.failed, 'warning'))),
      term('Timed out', figure('timeout', countFigure(upstream.timeout, 'warning'))),
      term('Overloaded', figure('overloaded', countFigure(upstream.overloaded, 'warning'))),
    ],
  ];
}

/** @param {string} name @param {readonly Content[]} content */
function term(name, ...content) {
  return h('div', {}, h('dt', {}, name), h('dd', {}, content));
}

/** @param {Diagnostics} diagnostics */
export function versionTable({ versions }) {
  return (
    versions.length > 0 &&
    table({
      caption: 'API versions that are deprecated or have a sunset date',
      columns: ['Version', 'Deprecated from', 'Sunset (410)', 'Successor'].map(heading),
      rows: visibleRows(versions).map(({ name, prefix, deprecation, sunset, successor, source }) =>
        h(
          'tr',
          {},
          rowHeading(code(prefix), origin(name, source)),
          cell('Deprecated from', deprecation === undefined ? '–' : timeText(deprecation)),
          cell('Sunset (410)', sunset === undefined ? '–' : timeText(sunset)),
          cell('Successor', successor === undefined ? '–' : code(breakable(successor))),
        ),
      ),
    })
  );
}
