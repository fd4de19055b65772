/** Summarises the health of the gateway in one line, with the worst faults first. Shared with the server. */
import { countOf } from './format.js';

/** @typedef {import('../diagnostics.ts').Diagnostics} Diagnostics */

/**
 * `error` needs immediate action. `warning` still works.
 * @param {Diagnostics} diagnostics
 * @returns {{ state: 'ok' | 'warning' | 'error', text: string }}
 */
export function verdictOf(diagnostics) {
  const { at, kubernetes, errors_total, routes, routes_total, clusters, threads, auth, ratelimit } = diagnostics;
  const routesIn = (/** @type {string} */ health) => routes.filter((route) => route.health === health).map(nameOf);
  const unhealthy = clusters.flatMap(({ addresses }) => addresses).filter(({ health }) => isUnhealthy(health));
  const open = clusters.filter(({ circuit }) => circuit === 'open').map(nameOf);
  const errors = [
    ...unreadCluster(kubernetes, false),
    ...(errors_total === 0 ? [] : [countOf(errors_total, 'configuration error')]),
    ...describe(routesIn('failing'), 'route', 'routes', 'failing'),
    ...describe(open, 'circuit', 'circuits', 'open'),
    ...(threads.serving < threads.configured ? [`${threads.serving} of ${threads.configured} threads serve`] : []),
  ];
  const warnings = [
    ...unreadCluster(kubernetes, true),
    ...describe(routesIn('degraded'), 'route', 'routes', 'degraded'),
    ...describe(
      unhealthy.map(({ origin }) => origin),
      'address',
      'addresses',
      'unhealthy',
    ),
    ...(threads.ended.some((one) => isRecent(one.at, at)) ? ['a thread ended in the last five minutes'] : []),
    ...(failedRecently(auth, at) ? ['failed auth calls in the last five minutes'] : []),
    ...(failedRecently(ratelimit, at) ? ['failed rate-limit calls in the last five minutes'] : []),
  ];
  const scope = routes.length < routes_total ? `, of the ${countOf(routes.length, 'route')} listed here` : '';
  const text = [...errors, ...warnings].join('; ') || 'All is well';
  return { state: errors.length > 0 ? 'error' : warnings.length > 0 ? 'warning' : 'ok', text: text + scope };
}

/**
 * It is worse before everything has been read once, because then no request can be served.
 * @param {Diagnostics['kubernetes']} kubernetes
 * @param {boolean} wasRead
 */
function unreadCluster(kubernetes, wasRead) {
  if (kubernetes?.read !== wasRead) return [];
  if (!wasRead) return ['the Kubernetes cluster has not been read'];
  return kubernetes.unread.length > 0 ? ['the Kubernetes cluster cannot be read'] : [];
}

/** @param {string} health of an address */
export function isUnhealthy(health) {
  return health === 'unhealthy' || health === 'ejected';
}

const recentMs = 300_000;

/**
 * The routes do not show such failures if requests are forwarded anyway, or are rejected with a status below 500.
 * @param {{ readonly last_error_at: string | undefined } | undefined} service
 * @param {string} now
 */
function failedRecently(service, now) {
  return service?.last_error_at !== undefined && isRecent(service.last_error_at, now);
}

/** A time far in the future was recorded before the clock was set back. @param {string} at @param {string} now */
function isRecent(at, now) {
  return Math.abs(Date.parse(now) - Date.parse(at)) < recentMs;
}

const namesMax = 3;

/**
 * `2 routes failing: orders, users`.
 * @param {readonly string[]} names
 * @param {string} noun
 * @param {string} plural
 * @param {string} state
 */
function describe(names, noun, plural, state) {
  if (names.length === 0) return [];
  const shown = names.slice(0, namesMax).join(', ');
  return [`${countOf(names.length, noun, plural)} ${state}: ${shown}${names.length > namesMax ? ' …' : ''}`];
}

/** @param {{ readonly name: string }} named */
function nameOf({ name }) {
  return name;
}
