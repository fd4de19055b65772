/** Describes the top of the page: the errors and notices of the configuration, and the tiles. */
import { breakable, chart, figure, partialListNote, timeAgo } from './cells.js';
import { disclosure, h } from './elements.js';
import { countFigure, errorFigure, totalTraffic } from './figures.js';
import { countOf, countText, rateText, spanText, timeText, visibleRows } from './format.js';

/** @typedef {import('../diagnostics.ts').Diagnostics} Diagnostics */
/** @typedef {import('../diagnostics.ts').ErrorRow} ErrorRow */
/** @typedef {import('./elements.js').Content} Content */

/** @param {Diagnostics} diagnostics */
export function errorList({ refused, refused_total, errors, errors_total: total, routes }) {
  const shown = visibleRows(refused);
  return (
    total > 0 &&
    h(
      'section',
      { 'aria-labelledby': 'errors', class: 'issues', 'data-state': 'error' },
      h('h3', { id: 'errors' }, countOf(total, 'configuration error')),
      shown.map(({ object, since, consequence }) => {
        const subject = object === undefined ? '' : ` ${object} is refused`;
        return h('p', {}, 'Since ', timeOf(since), `${subject}: ${consequence}.`);
      }),
      partialListNote(shown.length, refused_total, 'refused objects'),
      issueList({ issues: errors, total, what: 'errors' }, routes),
    )
  );
}

/** @param {Diagnostics} diagnostics */
export function endedThreads({ threads: { ended, ended_total: total }, at: now }) {
  return (
    total > 0 &&
    h(
      'section',
      { 'aria-labelledby': 'ended-threads', class: 'issues', 'data-state': 'warning' },
      h('h3', { id: 'ended-threads' }, `${countOf(total, 'thread')} ended because of an error`),
      h(
        'ul',
        {},
        ended.map(({ number, at, reason }) =>
          h('li', { 'data-key': String(number) }, `Thread ${countText(number)}, `, timeAgo(at, now), `: ${reason}`),
        ),
      ),
      partialListNote(ended.length, total, 'threads'),
    )
  );
}

/** @param {Diagnostics} diagnostics */
export function unreadList({ kubernetes }) {
  if (kubernetes === undefined) return false;
  const { read, unread } = kubernetes;
  const consequence = read
    ? 'What was read last stays in use.'
    : 'Until everything has been read for the first time, the server is not ready.';
  return (
    (!read || unread.length > 0) &&
    h(
      'section',
      { 'aria-labelledby': 'unread', class: 'issues', 'data-state': read ? 'warning' : 'error' },
      h('h3', { id: 'unread' }, 'The Kubernetes cluster cannot be read'),
      h('p', {}, consequence),
      h('ul', {}, visibleRows(unread).map(unreadItem)),
      partialListNote(visibleRows(unread).length, unread.length, 'resources'),
    )
  );
}

/** @param {NonNullable<Diagnostics['kubernetes']>['unread'][number]} unread */
function unreadItem({ resource, since, message }) {
  return h(
    'li',
    { 'data-key': resource },
    h('p', { class: 'place' }, h('code', {}, breakable(resource)), ' since ', timeOf(since)),
    h('p', { class: 'message' }, message),
  );
}

/** @param {string} time */
function timeOf(time) {
  return h('time', { datetime: time }, timeText(time));
}

const noticesOpenMax = 3;

/** @param {Diagnostics} diagnostics */
export function noticeList({ notices, notices_total: total, routes }) {
  const open = total <= noticesOpenMax ? '' : undefined;
  return (
    total > 0 &&
    disclosure(
      { class: 'issues', 'data-state': 'warning', id: 'notices', open },
      [`${countOf(total, 'notice')}: valid, but perhaps not what you meant`],
      () => issueList({ issues: notices, total, what: 'notices' }, routes),
    )
  );
}

/**
 * @param {{ readonly issues: readonly ErrorRow[], readonly total: number, readonly what: string }} list
 * @param {Diagnostics['routes']} routes
 */
function issueList({ issues, total, what }, routes) {
  const shown = visibleRows(issues);
  const items = shown.map(({ source, record, message, remedy }) =>
    h(
      'li',
      {},
      h('p', { class: 'place' }, h('code', {}, breakable(source)), record && [' ', recordLink(record, routes)]),
      h('p', { class: 'message' }, message),
      h('p', { class: 'remedy' }, h('span', { class: 'visually-hidden' }, 'What to do: '), remedy),
    ),
  );
  return [h('ul', {}, items), partialListNote(shown.length, total, what)];
}

/**
 * The name of a record, with a link to its route if an earlier version of it is on the page.
 * @param {string} record
 * @param {Diagnostics['routes']} routes
 */
function recordLink(record, routes) {
  const route = visibleRows(routes).findIndex(
    ({ name, internal, refusal }) => !internal && refusal === undefined && `Mapping ${name}` === record,
  );
  if (route < 0) return h('span', {}, record);
  return [h('a', { href: `#route-${route}` }, record), ', of which the last valid version is in use'];
}

/** @param {Diagnostics} diagnostics */
export function tiles(diagnostics) {
  const { version, uptime_seconds, at, configuration, kubernetes, threads, connections, auth, ratelimit } = diagnostics;
  const { generation, hash, applied_at } = configuration;
  return h(
    'dl',
    { class: 'tiles' },
    trafficTile(diagnostics),
    tile(
      'Configuration',
      large(`generation ${generation}`),
      ' ',
      h('code', {}, hash),
      br,
      'applied ',
      timeAgo(applied_at, at),
    ),
    kubernetes && kubernetesTile(kubernetes, at),
    tile('Version', large(version), br, `up for ${spanText(uptime_seconds)}`),
    threads.configured > 1 && threadsTile(threads),
    // In another app, the connections are those of the host.
    connections.open > 0 && connectionsTile(connections),
    auth && decisionsTile('Auth decisions', { allowed: auth.allowed, denied: auth.denied }, auth.error),
    ratelimit &&
      decisionsTile(
        'Rate-limit decisions',
        { 'within the limits': ratelimit.ok, 'over a limit': ratelimit.over },
        ratelimit.error,
      ),
  );
}

const br = h('br', {});

/** @param {string} title @param {readonly Content[]} content */
function tile(title, ...content) {
  return h('div', {}, h('dt', {}, title), h('dd', {}, content));
}

/** @param {NonNullable<Diagnostics['kubernetes']>} kubernetes @param {string} now */
function kubernetesTile(
  { namespace, namespaces, resources, answered_at, deliveries, read_failures, objects, writes },
  now,
) {
  const { accepted, last_valid, refused } = objects;
  return tile(
    'Kubernetes',
    large(counted(accepted, 'objects in use')),
    br,
    counted(last_valid, 'with their last valid version', 'warning'),
    br,
    counted(refused, 'refused', 'error'),
    br,
    answered_at === undefined ? 'The API server has not answered.' : ['answered ', timeAgo(answered_at, now)],
    disclosure({ id: 'kubernetes' }, ['What is read'], () => [
      h('p', {}, `frontdesk is in the namespace ${namespace}, and reads ${namespaces.join(', ') || 'all namespaces'}.`),
      h('p', {}, resources.join(', ')),
      h(
        'p',
        {},
        `${countOf(deliveries, 'delivery', 'deliveries')}, `,
        counted(read_failures, 'failed reads', 'warning'),
      ),
      h(
        'p',
        {},
        `Written to the cluster: ${countText(writes.succeeded)}, `,
        counted(writes.failed, 'failed', 'warning'),
        `, ${countText(writes.waiting)} waiting`,
      ),
    ]),
  );
}

/** @param {Diagnostics['threads']} threads */
function threadsTile({ configured, serving }) {
  const text = `${countText(serving)} of ${countText(configured)}`;
  const all = figure('threads', { text, state: serving < configured ? 'error' : 'ok' });
  return tile('Threads', large(all), ' serve', br, 'Counts are their sums, states the worst.');
}

/** @param {Diagnostics['connections']} connections */
function connectionsTile({ open, max, http2, http2_requests: requests }) {
  const ofHttp2 = [counted(http2, 'over HTTP/2'), ', with ', countOf(requests, 'request')];
  return tile('Connections', large(countText(open)), ` of ${countText(max)}`, br, ofHttp2);
}

/**
 * @param {string} title
 * @param {Readonly<Record<string, number>>} decided the decisions by what they say
 * @param {number} failed
 */
function decisionsTile(title, decided, failed) {
  const rows = Object.entries(decided).map(([what, count]) => [counted(count, what), br]);
  return tile(title, rows, counted(failed, 'failed', 'warning'));
}

/** @param {Diagnostics} diagnostics */
function trafficTile(diagnostics) {
  const { routes, routes_total } = diagnostics;
  const traffic = totalTraffic(diagnostics);
  const { requests_per_second, error_share, in_flight } = traffic;
  return h(
    'div',
    { class: 'wide' },
    h('dt', {}, routes.length < routes_total ? 'Traffic of the routes listed here' : 'Traffic'),
    h(
      'dd',
      {},
      large(rateText(requests_per_second)),
      ' requests/s, ',
      figure('errors', errorFigure(error_share)),
      ` errors, ${countText(in_flight)} in flight`,
      chart(traffic),
    ),
  );
}

/** @param {Content} content */
function large(content) {
  return h('span', { class: 'large' }, content);
}

/**
 * @param {number} count
 * @param {string} what
 * @param {import('./figures.js').Figure['state']} [state]
 */
function counted(count, what, state) {
  return [figure(what, countFigure(count, state)), ` ${what}`];
}
