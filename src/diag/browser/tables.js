/** Describes the tables of services, limits, requests without a route, and failed requests. */
import {
  bar,
  breakable,
  cell,
  code,
  explanationOf,
  figure,
  heading,
  hint,
  numberCell,
  numberHeading,
  origin,
  partialListNote,
  rowHeading,
  shortCell,
  table,
  timeAgo,
} from './cells.js';
import { disclosure, h } from './elements.js';
import { addressHealthFigure, circuitFigure, countFigure, expiryFigure, fullnessFigure } from './figures.js';
import { countOf, countText, visibleRows } from './format.js';

/** @typedef {import('../diagnostics.ts').Diagnostics} Diagnostics */
/** @typedef {import('./elements.js').Content} Content */

/** @param {Diagnostics} diagnostics @returns {Content} */
export function clusterTable({ clusters, clusters_total: total }) {
  if (total === 0) return hint('All services run in this server.');
  const shown = visibleRows(clusters);
  return [
    table({
      caption: 'Remote HTTP services',
      columns: [
        heading('Cluster'),
        heading('Addresses'),
        heading('Circuit'),
        numberHeading('In flight'),
        numberHeading('Upgrades'),
        numberHeading('Rejected by circuit'),
        heading('Mappings'),
      ],
      rows: shown.map(clusterRow),
    }),
    partialListNote(shown.length, total, 'clusters'),
  ];
}

/** @param {Diagnostics['clusters'][number]} cluster */
function clusterRow({ name, service, addresses, used, circuit, mappings, mappings_total, ...counts }) {
  const further = mappings_total - mappings.length;
  return h(
    'tr',
    { 'data-key': name },
    rowHeading(
      name,
      service !== name && h('span', { class: 'minor' }, service),
      !used && h('span', { class: 'minor' }, 'not used yet'),
    ),
    cell('Addresses', addresses.length === 0 ? 'none' : h('ul', { class: 'bare' }, addresses.map(addressItem))),
    cell('Circuit', figure('circuit', circuitFigure(circuit))),
    numberCell('In flight', 'active', countFigure(counts.active_requests)),
    numberCell('Upgrades', 'upgrades', countFigure(counts.active_upgrades)),
    numberCell('Rejected by circuit', 'overflows', countFigure(counts.overflows, 'warning')),
    cell('Mappings', mappings.join(', ') || '–', further > 0 && ` and ${countText(further)} more`),
  );
}

/** @param {Diagnostics['clusters'][number]['addresses'][number]} address */
function addressItem({ origin: address, health, active_requests }) {
  const active = figure('active', countFigure(active_requests));
  return h('li', {}, code(address), ' ', figure('health', addressHealthFigure(health)), ', ', active, ' in flight');
}

const servicesOpenMax = 10;

/** @param {Diagnostics} diagnostics @returns {Content} */
export function serviceTable({ services, services_total: total }) {
  const shown = visibleRows(services);
  return (
    total > 0 &&
    disclosure(
      { id: 'services', open: total <= servicesOpenMax ? '' : undefined },
      [`${countOf(total, 'service')} named in records`],
      () => [
        table({
          columns: ['Role', 'Service', 'Target'].map(heading),
          rows: shown.map(({ role, service, target }) =>
            h('tr', {}, rowHeading(role), cell('Service', code(service)), cell('Target', target)),
          ),
        }),
        partialListNote(shown.length, total, 'services'),
      ],
    )
  );
}

/** @param {Diagnostics} diagnostics @returns {Content} */
export function certificateTable({ certificates, certificates_total: total, at: now }) {
  const shown = visibleRows(certificates);
  return (
    total > 0 && [
      table({
        caption: 'Certificates of the gateway',
        columns: ['File', 'Hosts', 'Expires'].map(heading),
        rows: shown.map(({ name, hosts, expires_at: at }) =>
          h(
            'tr',
            { 'data-key': name },
            rowHeading(code(breakable(name))),
            cell('Hosts', hosts.join(', ') || '–'),
            cell('Expires', figure('expiry', expiryFigure(at, now))),
          ),
        ),
      }),
      partialListNote(shown.length, total, 'certificates'),
    ]
  );
}

/** @param {Diagnostics} diagnostics @returns {Content} */
export function tokenProviderTable({ token_providers: providers, at }) {
  return (
    providers.length > 0 &&
    table({
      caption: 'Issuers of tokens (JwtProvider), with the tokens since the start',
      columns: [
        heading('Issuer'),
        heading('Keys'),
        numberHeading('Valid'),
        numberHeading('Known'),
        numberHeading('Invalid'),
        numberHeading('Unknown key'),
        numberHeading('Unchecked'),
        heading('Last rejection'),
      ],
      rows: visibleRows(providers).map((provider) => tokenProviderRow(provider, at)),
    })
  );
}

/** @param {Diagnostics['token_providers'][number]} provider @param {string} now */
function tokenProviderRow({ name, issuer, source, last_rejection: reason, last_rejection_at: at, ...provider }, now) {
  return h(
    'tr',
    { 'data-key': name },
    rowHeading(breakable(issuer), origin(name, source)),
    cell('Keys', keysText(provider, now)),
    numberCell('Valid', 'valid', countFigure(provider.valid)),
    numberCell('Known', 'remembered', countFigure(provider.remembered)),
    numberCell('Invalid', 'invalid', countFigure(provider.invalid)),
    numberCell('Unknown key', 'unknown key', countFigure(provider.unknown_key)),
    numberCell('Unchecked', 'unchecked', countFigure(provider.unchecked, 'error')),
    cell('Last rejection', reason === undefined || at === undefined ? '–' : [reason, ' ', timeAgo(at, now)]),
  );
}

/** @param {Omit<Diagnostics['token_providers'][number], 'name' | 'issuer' | 'source' | 'last_rejection' | 'last_rejection_at'>} provider @param {string} now @returns {Content} */
function keysText(
  { keys, keys_from: from, keys_read_at: readAt, failures, last_error: error, last_error_at: at },
  now,
) {
  return [
    keys === undefined ? 'none yet' : countOf(keys, 'key'),
    ' from ',
    breakable(from),
    readAt !== undefined && [', ', timeAgo(readAt, now)],
    error !== undefined &&
      at !== undefined &&
      h('span', { class: 'minor' }, error, ' ', timeAgo(at, now), `, ${countOf(failures, 'failure')}`),
  ];
}

/** @param {Diagnostics} diagnostics @returns {Content} */
export function limitTable({ limits, limits_total: total }) {
  if (total === 0) return hint('No limits are configured here.');
  const shown = visibleRows(limits);
  return [
    table({
      caption: 'Fullness is that of the fullest counter of each limit. Hits are those in this process since the start.',
      columns: [['Descriptor', 'Limit', 'Fullness'].map(heading), ['Hits', 'Over limit'].map(numberHeading)],
      rows: shown.map(limitRow),
    }),
    partialListNote(shown.length, total, 'limits'),
  ];
}

/** @param {Diagnostics['limits'][number]} row */
function limitRow({ domain, descriptor, limit, source, hits, over, fullness }) {
  const full = fullnessFigure(fullness);
  return h(
    'tr',
    {},
    rowHeading(code(descriptor), origin(domain, source)),
    cell('Limit', limit),
    h('td', { 'data-label': 'Fullness', class: 'fullness' }, bar(fullness ?? 0, full), ' ', figure('full', full)),
    numberCell('Hits', 'hits', countFigure(hits)),
    numberCell('Over limit', 'over', countFigure(over, 'warning')),
  );
}

/** @param {Diagnostics} diagnostics @returns {Content} */
export function unmatchedTable({ unmatched_requests: rows, at: now }) {
  if (rows.length === 0) return hint('None since the start.');
  return table({
    caption: 'The gateway responded with 404, latest first. Each link explains why no route matched.',
    columns: [['Last', 'Request'].map(heading), numberHeading('Requests')],
    rows: rows.map(({ at, method, path, requests }) =>
      h(
        'tr',
        { 'data-key': `${method} ${path}` },
        shortCell('Last', timeAgo(at, now)),
        rowHeading(method, ' ', h('a', { href: explanationOf(method, path) }, code(breakable(path)))),
        numberCell('Requests', 'requests', countFigure(requests)),
      ),
    ),
  });
}

/** @param {Diagnostics} diagnostics @returns {Content} */
export function failureTable({ failures, at: now }) {
  if (failures.length === 0) return hint('None since the start.');
  return table({
    caption: 'Responses with status 500 or more, newest first',
    columns: ['When', 'Status', 'Request', 'Mapping', 'Why', 'Request id'].map(heading),
    rows: failures.map((failure) => {
      const { at, request_id, method, path, mapping, status } = failure;
      return h(
        'tr',
        { 'data-key': `${request_id} ${at}` },
        shortCell('When', timeAgo(at, now)),
        shortCell('Status', figure('status', { text: String(status), state: 'error' })),
        rowHeading(method, ' ', code(path)),
        shortCell('Mapping', mapping ?? 'no route'),
        cell('Why', reasonOf(failure)),
        cell('Request id', code(request_id)),
      );
    }),
  });
}

/** @param {Diagnostics['failures'][number]} failure @returns {Content} */
function reasonOf({ problem, reason, upstream }) {
  if (problem === undefined && reason === undefined) {
    return ['the service itself responded with this status', upstream && ` (${upstream})`];
  }
  return [
    problem && [h('a', { href: `../problems/${encodeURIComponent(problem)}` }, problem), ' '],
    reason,
    upstream && ` (${upstream})`,
  ];
}
