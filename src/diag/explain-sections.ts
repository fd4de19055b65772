/** An explanation in the order in which it is read: the same headings and rows for a terminal and for a page. */
import type { Explanation } from '#gateway';
import { authRows, limitRows } from './explain-stages.ts';
import { acrossRows, headerRows } from './explain-target.ts';

export interface Section {
  readonly heading: string;
  /** Cells; all but the last of a row are short. */
  readonly rows: readonly (readonly string[])[];
}

/** Sections that would be empty are left out. */
export function explanationSections(explanation: Explanation): readonly Section[] {
  const { auth, rate_limit: limit, target, mapping } = explanation;
  const sections: Section[] = [
    { heading: 'Request', rows: requestRows(explanation) },
    { heading: 'Version', rows: versionRows(explanation) },
    { heading: 'Mapping', rows: mapping === undefined ? [] : mappingRows(explanation) },
    { heading: 'Candidates, in the order in which they are tried', rows: candidateRows(explanation) },
    { heading: 'CORS', rows: corsRows(explanation) },
    { heading: 'Authentication', rows: auth === undefined ? [] : authRows(auth, explanation.request.user) },
    { heading: 'Rate limit', rows: limit === undefined ? [] : limitRows(limit) },
    { heading: 'Service', rows: targetRows(explanation) },
    { heading: 'Headers that the service gets', rows: target === undefined ? [] : headerRows(target) },
    { heading: 'On the way', rows: target?.across === undefined ? [] : acrossRows(target.across) },
  ];
  return sections.filter(({ rows }) => rows.length > 0);
}

/** In one sentence. */
export function verdictOf({ outcome, mapping, candidates, target, redirect, cors }: Explanation): string {
  if (outcome.kind === 'refused') return `refused with ${outcome.status} (${outcome.problem}): ${outcome.detail}`;
  if (outcome.kind === 'preflight') {
    const whether = cors?.allowed ? 'with permission' : 'without permission';
    return `a preflight, answered ${whether} by the gateway (${outcome.status})`;
  }
  if (redirect !== undefined) return `redirected with ${redirect.status} to ${redirect.location}`;
  const where = target?.kind === 'remote' ? target.addresses.join(' or ') : 'in this process';
  const isShared = candidates.filter((one) => one.outcome === 'matched').length > 1;
  const name = isShared ? `${mapping?.name} (one of several: ${mapping?.reason})` : mapping?.name;
  return `${name} sends it to ${target?.service} (${where}) as ${target?.method} ${target?.path}`;
}

function requestRows({ request }: Explanation): string[][] {
  const { path, query, scheme, host, client, identity_headers: identity, stripped } = request;
  return [
    ['path', path ?? 'cannot be read in one way only'],
    ...row('query', query),
    ['host', host === '' ? 'not told' : host],
    ['client', `${client}, over ${scheme}`],
    ...row('stripped', stripped.length === 0 ? '' : `${stripped.join(', ')}: only an auth service may set it`),
    ...row('reserved', stripped.length > 0 ? '' : identity.join(', ')),
  ];
}

function versionRows({ version }: Explanation): string[][] {
  if (version === undefined) return [];
  const { name, source, prefix, ended, headers } = version;
  return [
    ['name', `${name} (${source})`],
    ['is', `${prefix} and all below it, which ${ended ? 'has ended: the answer is 410' : 'is still answered'}`],
    ...headers.map((header) => ['answer has', `${header.name}: ${header.value}`]),
  ];
}

function mappingRows({ mapping }: Explanation): string[][] {
  if (mapping === undefined) return [];
  const { name, source, prefix, conditions, reason } = mapping;
  return [
    ['name', name],
    ['place', source ?? 'a route of the server itself'],
    ['matches', [prefix, ...conditions].join('  ')],
    ['wins since', reason],
  ];
}

const marks = { matched: 'wins', shadow: 'copy', lost: 'loses' } as const;

function candidateRows({ candidates, candidates_not_listed: others }: Explanation): string[][] {
  const rows = candidates.map(({ outcome, name, prefix, conditions, reason, source }) => [
    marks[outcome],
    name,
    [prefix, ...conditions].join('  '),
    `${reason}${source === undefined ? '' : ` (${source})`}`,
  ]);
  if (others === 0) return rows;
  return [...rows, ['', `${others} more`, '', 'lose by their path alone']];
}

function corsRows({ cors }: Explanation): string[][] {
  if (cors === undefined) return [];
  const { rule, origins, origin, allowed, headers } = cors;
  return [
    ['rule', rule === 'mapping' ? 'of the mapping' : `the setting ${rule}`],
    ['origins', origins.join(', ')],
    ...row('this one', origin === undefined ? '' : `${origin} is ${allowed ? 'permitted' : 'not permitted'}`),
    ...headers.map(({ name, value }) => ['answer has', `${name}: ${value}`]),
  ];
}

function targetRows({ target, shadow }: Explanation): string[][] {
  if (target === undefined) return [];
  const { service, kind, addresses, method, path, response_headers: answer } = target;
  return [
    ['name', service],
    ['where', kind === 'local' ? 'in this process' : addresses.join(', ')],
    ['asked', `${method} ${path}`],
    ...row('copy to', shadow === undefined ? '' : `${shadow.url} (${shadow.name}: ${shadow.reason})`),
    ...row('answer loses', answer.remove.join(', ')),
    ...answer.add.map(({ name, value }) => ['answer gets', `${name}: ${value}`]),
  ];
}

function row(label: string, text: string): string[][] {
  return text === '' ? [] : [[label, text]];
}
