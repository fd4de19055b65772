/** Whether all is well, in one line; what is worst comes first. */
import { countOf } from './words.js';

/** @typedef {import('../diagnostics.ts').Diagnostics} Diagnostics */

/**
 * `ill`: somebody is to get up. `watch`: it still works.
 * @param {Diagnostics} diagnostics
 * @returns {{ state: 'well' | 'watch' | 'ill', text: string }}
 */
export function verdictOf({ at, errors_total, routes, routes_total, clusters, auth, ratelimit }) {
  const routesIn = (/** @type {string} */ health) => routes.filter((route) => route.health === health).map(nameOf);
  const unwell = clusters.flatMap(({ addresses }) => addresses).filter(({ health }) => isUnwell(health));
  const open = clusters.filter(({ circuit }) => circuit === 'open').map(nameOf);
  const ill = [
    ...(errors_total === 0 ? [] : [countOf(errors_total, 'configuration error')]),
    ...told(routesIn('failing'), 'route', 'routes', 'failing'),
    ...told(open, 'circuit', 'circuits', 'open'),
  ];
  const watch = [
    ...told(routesIn('degraded'), 'route', 'routes', 'degraded'),
    ...told(
      unwell.map(({ origin }) => origin),
      'address',
      'addresses',
      'unwell',
    ),
    ...(wasSilent(auth, at) ? ['auth gave no answer within five minutes'] : []),
    ...(wasSilent(ratelimit, at) ? ['the rate-limit service gave no answer within five minutes'] : []),
  ];
  const among = routes.length < routes_total ? `, of the ${countOf(routes.length, 'route')} listed here` : '';
  const text = [...ill, ...watch].join('; ') || 'All is well';
  return { state: ill.length > 0 ? 'ill' : watch.length > 0 ? 'watch' : 'well', text: text + among };
}

/** @param {string} health of an address */
export function isUnwell(health) {
  return health === 'unhealthy' || health === 'ejected';
}

const silenceMs = 300_000;

/**
 * A mapping may let pass what nobody judged, or refuse it with less than 500: then no route tells of it.
 * @param {{ readonly last_error_at: string | undefined } | undefined} judge
 * @param {string} at
 */
function wasSilent(judge, at) {
  const last = judge?.last_error_at;
  return last !== undefined && Date.parse(at) - Date.parse(last) < silenceMs;
}

const namesMax = 3;

/**
 * `2 routes failing: hotel, car`.
 * @param {readonly string[]} names
 * @param {string} noun
 * @param {string} plural
 * @param {string} state
 */
function told(names, noun, plural, state) {
  if (names.length === 0) return [];
  const shown = names.slice(0, namesMax).join(', ');
  return [`${countOf(names.length, noun, plural)} ${state}: ${shown}${names.length > namesMax ? ' …' : ''}`];
}

/** @param {{ readonly name: string }} named */
function nameOf({ name }) {
  return name;
}
