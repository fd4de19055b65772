/** Formats an explanation: as sections for pages and terminals, and as text for terminals. */

import type { AttachedPolicy } from '#config';
import type { AuthPart, LimitPart, RateLimitPart, TargetPart, UpstreamPart } from '#gateway';
import { formatLimit } from '#ratelimit/limit';
import type { Explanation } from './explanation.ts';

export interface Section {
  readonly heading: string;
  /** The cells of each row. Only the last cell may be long. */
  readonly rows: readonly (readonly string[])[];
}

/** Omits empty sections. */
export function explanationSections(explanation: Explanation): readonly Section[] {
  const { auth, rate_limit: limit, target } = explanation;
  const sections: Section[] = [
    { heading: 'Request', rows: requestRows(explanation) },
    { heading: 'Version', rows: versionRows(explanation) },
    { heading: 'Mapping', rows: mappingRows(explanation) },
    { heading: 'Candidates, in the order in which they are tried', rows: candidateRows(explanation) },
    { heading: 'CORS', rows: corsRows(explanation) },
    { heading: 'Authentication', rows: auth === undefined ? [] : authRows(auth, explanation.request.user) },
    { heading: 'Rate limit', rows: limit === undefined ? [] : limitRows(limit) },
    { heading: 'Service', rows: targetRows(explanation) },
    { heading: 'Headers sent to the service', rows: target === undefined ? [] : headerRows(target) },
    { heading: 'Upstream settings', rows: target?.across === undefined ? [] : upstreamRows(target.across) },
  ];
  return sections.filter(({ rows }) => rows.length > 0);
}

/** Returns aligned text without colours and control characters. Ends with a line break. */
export function formatExplanation(explanation: Explanation): string {
  const { method, url, user } = explanation.request;
  const by = user ?? (explanation.auth?.asked ? explanation.auth.user : undefined);
  const title = `${method} ${url}${by === undefined ? '' : ` by ${by}`}`;
  const sections = explanationSections(explanation);
  const labelWidth = Math.max(...sections.filter(({ rows }) => isPairs(rows)).map(({ rows }) => widthOf(rows, 0)));
  const blocks = sections.map(({ heading, rows }) => [heading, ...aligned(rows, labelWidth)].join('\n'));
  return `${printable([title, `  ${verdictOf(explanation)}`, '', blocks.join('\n\n')].join('\n'))}\n`;
}

type Rows = Section['rows'];

/** Whether every row is a label and a text. Such labels have the same width in all sections. */
function isPairs(rows: Rows): boolean {
  return rows.every((row) => row.length === 2);
}

function aligned(rows: Rows, labelWidth: number): string[] {
  const [first = []] = rows;
  const widths = isPairs(rows) ? [labelWidth] : first.map((_, column) => widthOf(rows, column));
  return rows.map((row) => `  ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}`.trimEnd());
}

function widthOf(rows: Rows, column: number): number {
  return Math.max(...rows.map((row) => row[column]?.length ?? 0));
}

/** Replaces control characters, because a terminal would interpret escape sequences. */
function printable(text: string): string {
  return text.replace(/[^\P{Cc}\n]/gu, '\ufffd');
}

/** Replaces the detail of a 404, which has no advice for operators. */
const noMapping = 'no mapping matches; `frontdesk check` lists all mappings';

/** Summarises the outcome in one sentence. */
export function verdictOf(explanation: Explanation): string {
  const { outcome, redirect, cors } = explanation;
  if (outcome.kind === 'refused')
    return `rejected with ${outcome.status} (${outcome.problem}): ${whyRefused(outcome, explanation)}`;
  if (outcome.kind === 'preflight') {
    const permits = cors?.allowed ? 'permits' : 'does not permit';
    return `preflight: the gateway responds with ${outcome.status} and ${permits} the request`;
  }
  if (redirect !== undefined) return `redirected with ${redirect.status} to ${redirect.location}`;
  return forwardText(explanation);
}

function whyRefused(
  { stage, status, detail }: Extract<Explanation['outcome'], { kind: 'refused' }>,
  { mapping, auth }: Explanation,
): string {
  if (stage === 'authentication' && auth?.asked) return auth.decision_reason;
  return stage === 'routing' && mapping === undefined && status === 404 ? noMapping : detail;
}

function forwardText({ mapping, candidates, target, auth }: Explanation): string {
  const where = target === undefined ? '' : whereText(target, ' or ');
  const service = where === target?.service ? where : `${target?.service} (${where})`;
  const isShared = candidates.filter((one) => one.outcome === 'matched').length > 1;
  const name = isShared ? `${mapping?.name} (one of several: ${mapping?.reason})` : mapping?.name;
  const sends = `Mapping ${name} sends it to ${service} as ${target?.method} ${target?.path}`;
  const ends = target?.no_address === undefined ? sends : `${sends}, so the client gets 503`;
  if (!auth?.asked || auth.decision !== 'unknown') return ends;
  return `if AuthService ${auth.name} (${auth.target}) allows it, ${ends}`;
}

function whereText({ kind, addresses, no_address: noAddress }: TargetPart, separator: string): string {
  return kind === 'local' ? 'in this process' : (noAddress ?? addresses.join(separator));
}

function requestRows({ request }: Explanation): string[][] {
  const { path, query, scheme, host, client, identity_headers: identity, stripped } = request;
  return [
    ['path', path ?? 'ambiguous'],
    ...row('query', query),
    ['host', host === '' ? 'unknown' : host],
    ['client', `${client}, over ${scheme}`],
    ...row('stripped', ownedByAuth(stripped)),
    ...row('reserved', stripped.length > 0 ? '' : ownedByAuth(identity)),
  ];
}

function ownedByAuth(headers: readonly string[]): string {
  return headers.length === 0 ? '' : `${headers.join(', ')}: set only by the gateway`;
}

function versionRows({ version }: Explanation): string[][] {
  if (version === undefined) return [];
  const { name, source, prefix, ended, headers } = version;
  return [
    ['name', `${name} (${source})`],
    ['covers', `${prefix} and all paths below it`],
    ['status', ended ? 'ended: the response is 410' : 'active'],
    ...headers.map((header) => ['response', `with ${header.name}: ${header.value}`]),
  ];
}

function mappingRows({ mapping }: Explanation): string[][] {
  if (mapping === undefined) return [];
  const { name, source, prefix, conditions, reason, policies = [] } = mapping;
  return [
    ['name', name],
    ['source', source ?? 'built-in route'],
    ['matches', [prefix, ...conditions].join('  ')],
    ['reason', reason],
    ...policies.map((policy) => ['policy', policyText(policy)]),
  ];
}

function policyText({ name, fields }: AttachedPolicy): string {
  return fields.length === 0 ? `${name}, which decides nothing here` : `${name}: ${fields.join(', ')}`;
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
  return [...rows, ['', `${others} more`, '', 'do not match the path, built-in routes included']];
}

function corsRows({ cors }: Explanation): string[][] {
  if (cors === undefined) return [];
  const { rule, origins, origin, allowed, headers } = cors;
  return [
    ['rule', rule === 'mapping' ? 'from the mapping' : `from the setting ${rule}`],
    ['origins', origins.join(', ')],
    ...row('origin', origin === undefined ? '' : `${origin} is ${allowed ? 'permitted' : 'not permitted'}`),
    ...headers.map(({ name, value }) => ['response', `with ${name}: ${value}`]),
  ];
}

function targetRows({ target, shadow }: Explanation): string[][] {
  if (target === undefined) return [];
  const { service, method, grpc, path, response_headers: response, compressed } = target;
  return [
    ['name', service],
    ['where', whereText(target, ', ')],
    ['request', `${method} ${path}`],
    ...row('gRPC', grpc === undefined ? '' : `method ${grpc.method} of ${grpc.service}`),
    ...row('copy to', shadow === undefined ? '' : `${shadow.url} (${shadow.name}: ${shadow.reason})`),
    ...response.remove.map((name) => ['response', `without ${name}`]),
    ...response.add.map(({ name, value }) => ['response', `with ${name}: ${value}`]),
    ...row('response', compressed ? 'compressed for clients that accept it' : ''),
  ];
}

/** `user`: the user that the auth service is assumed to return. */
function authRows(auth: AuthPart, user: string | undefined): string[][] {
  if (!auth.asked) return [['skipped', auth.reason]];
  const { name, source, service, target, method, path, headers, body, context } = auth;
  const { timeout_ms: timeout, cache_ms: cache } = auth;
  return [
    ['name', `${name} (${source})`],
    ...tokenRows(auth),
    ...row('API keys', auth.key_header === undefined ? '' : `in the header ${auth.key_header}, which is then removed`),
    ['where', target === 'in this process' ? target : `${service}, ${target}`],
    ['request', `${method} ${path}`],
    ...headers.map((header, index) => [index === 0 ? 'headers' : '', `${header.name}: ${header.value}`]),
    ['body', body],
    ...row('told', context.map((one) => `${one}: …`).join(', ')),
    ...(timeout === undefined ? [] : [['time-out', `${timeout} ms`]]),
    ...(cache === 0 ? [] : [['cached', `positive decisions for ${cache} ms`]]),
    ['on success', auth.on_success],
    ['on denial', auth.on_refusal],
    ['on failure', auth.on_error],
    decisionRow(auth, user),
  ];
}

type AskedPart = Extract<AuthPart, { asked: true }>;

function decisionRow({ decision, decision_reason: reason, user_header: header }: AskedPart, user: string | undefined) {
  if (user !== undefined && decision === 'allowed') return ['assumed', `200 with ${header ?? 'no header'}: ${user}`];
  const hint = user === undefined && decision !== 'allowed' ? '; to assume a user: --user NAME' : '';
  return ['decision', `${decision}: ${reason}${hint}`];
}

function tokenRows({ tokens, required_claims: claims }: AskedPart): string[][] {
  if (tokens === undefined) return [];
  const { providers, places, headers } = tokens;
  return [
    ['tokens', `of ${providers.join(', ')}, in ${places.join(', ')}; the service is asked only without a token`],
    ...row('claims', headers.length === 0 ? '' : `sent in ${headers.join(', ')}`),
    ...row('required', claims === undefined ? '' : `${claims}; others get 403`),
  ];
}

function limitRows(limit: RateLimitPart): string[][] {
  if (!limit.asked) return [['skipped', limit.reason]];
  const { name, source, domain, decided_by: by, descriptors } = limit;
  return [
    ['name', `${name} (${source})`],
    ['decided by', by],
    ['domain', domain],
    ...descriptors.flatMap(({ entries, limits, before_auth: isFirst }) => [
      [
        'descriptor',
        `${entries.map(({ key, value }) => `${key}=${value}`).join(' › ')}${isFirst ? ', before authentication' : ''}`,
      ],
      ...limitsRows(limits, by),
    ]),
    ...row('response', limit.response_headers.length === 0 ? '' : `with ${limit.response_headers.join(', ')}`),
    ['exceeded', limit.on_over_limit],
    ['on failure', limit.on_error],
  ];
}

function limitsRows(limits: readonly LimitPart[] | undefined, by: string): string[][] {
  if (limits === undefined) return [['', `only ${by} knows the limits`]];
  if (limits.length === 0) return [['', 'no limit applies']];
  return limits.map((limit) => ['', `${limitText(limit)}${limit.source === undefined ? '' : ` (${limit.source})`}`]);
}

function limitText(limit: LimitPart): string {
  const { requests_per_unit: requestsPerUnit, unit_multiplier: unitMultiplier, shadow_mode: shadowMode } = limit;
  return formatLimit({ ...limit, requestsPerUnit, unitMultiplier, shadowMode });
}

function headerRows({ headers, headers_removed: removed }: TargetPart): string[][] {
  const of = (by: 'client' | 'gateway', label: string) =>
    headers
      .filter((header) => header.by === by)
      .map(({ name, value }, index) => [index === 0 ? label : '', `${name}: ${value}`]);
  return [
    ...of('client', 'forwarded'),
    ...of('gateway', 'set'),
    ...(removed.length === 0 ? [] : [['removed', removed.join(', ')]]),
  ];
}

function upstreamRows(upstream: UpstreamPart): string[][] {
  const { retries, circuit_breakers: breakers, health_check: health, upgrades_allowed: upgrades } = upstream;
  const bounded = upstream.bounds_whole_call ? 'for the whole call' : 'until the response headers';
  return [
    ['protocol', upstream.protocol],
    ['time-out', `${duration(upstream.timeout_ms, 'UPSTREAM_TIMEOUT_MS')}, ${bounded}`],
    ['connect', duration(upstream.connect_timeout_ms, 'UPSTREAM_CONNECT_TIMEOUT_MS')],
    ['idle body', duration(upstream.idle_timeout_ms, undefined)],
    ['body', upstream.body_bytes_max === undefined ? 'no limit' : `at most ${upstream.body_bytes_max} bytes`],
    ['balancing', upstream.load_balancer.replace('_', ' ')],
    ['retries', retriesText(retries)],
    [
      'at most',
      `${breakers.max_connections} connections per address, ${breakers.max_pending_requests} pending requests, ` +
        `${breakers.max_requests} active requests, ${breakers.max_retries} retries`,
    ],
    ...(health === undefined ? [] : [['health', health]]),
    [
      'upgrades',
      upgrades.length === 0 ? 'none' : `${upgrades.join(', ')}, at most ${breakers.max_upgrades} connections`,
    ],
  ];
}

function duration({ value, from }: UpstreamPart['timeout_ms'], setting: string | undefined): string {
  const where = from === 'mapping' ? 'mapping' : (setting ?? 'default');
  return `${value === 0 ? 'no limit' : `${value} ms`} (${where})`;
}

function retriesText({ on, most, per_try_timeout_ms: perTry, applies }: UpstreamPart['retries']): string {
  if (most === 0) return 'none';
  const each = perTry === undefined ? '' : `, ${perTry} ms per attempt`;
  return `${most} on ${on.join(', ')}${each}${applies ? '' : '; not for this method'}`;
}

function row(label: string, text: string): string[][] {
  return text === '' ? [] : [[label, text]];
}
