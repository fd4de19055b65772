/** What the markup of each part of the page hangs on, beside its figures: when it differs, the part is fetched anew. */
import { shown } from './shown.js';

/** @typedef {import('../diagnostics.ts').Diagnostics} Diagnostics */

/** @typedef {Readonly<Record<'facts' | 'errors' | 'routes' | 'versions' | 'clusters' | 'limits', string>>} Structures */

/**
 * A short digest for each part.
 * @param {Diagnostics} diagnostics
 * @returns {Structures}
 */
export function structuresOf(diagnostics) {
  const { version, configuration, errors, errors_total, notices, notices_total } = diagnostics;
  const { routes, routes_total, routes_matching, clusters, clusters_total } = diagnostics;
  const { services, services_total, limits, limits_total, auth, ratelimit } = diagnostics;
  const isTold = [auth !== undefined, ratelimit !== undefined];
  return {
    facts: digestOf([version, configuration, isTold, routes_total]),
    errors: digestOf([shown(errors), errors_total, shown(notices), notices_total]),
    routes: digestOf([shown(routes).map(withoutFigures), routes_total, routes_matching]),
    versions: digestOf(diagnostics.versions),
    clusters: digestOf([shown(clusters).map(addressed), clusters_total, shown(services), services_total]),
    limits: digestOf([shown(limits).map(({ hits, over, fullness, ...limit }) => limit), limits_total]),
  };
}

/** @param {Diagnostics['routes'][number]} route */
function withoutFigures({ health, traffic, ...route }) {
  return [route, traffic.upstream !== undefined];
}

/** @param {Diagnostics['clusters'][number]} cluster */
function addressed({ name, used, addresses, mappings }) {
  return [name, used, addresses.map(({ origin }) => origin), mappings];
}

/**
 * FNV-1a, on UTF-16 units: to tell apart, not to prove.
 * @param {unknown} value
 */
function digestOf(value) {
  const text = JSON.stringify(value);
  let digest = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    digest = Math.imul(digest ^ text.charCodeAt(index), 0x01000193);
  }
  return (digest >>> 0).toString(36);
}
