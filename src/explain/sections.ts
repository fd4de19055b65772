/** An explanation as headings and rows, the same for a page and a terminal; and as text for a terminal. */
import type { AcrossPart, AuthPart, Explanation, LimitPart, RateLimitPart, TargetPart } from './explanation.ts';

export interface Section {
  readonly heading: string;
  /** Cells; all but the last in a row are short. */
  readonly rows: readonly (readonly string[])[];
}

/** Leaves out empty sections. */
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

/** For a terminal: aligned, without colour, without control characters that a client sent. Ends with a line break. */
export function formatExplanation(explanation: Explanation): string {
  const { method, url, user } = explanation.request;
  const title = `${method} ${url}${user === undefined ? '' : ` by ${user}`}`;
  const sections = explanationSections(explanation);
  const labelWidth = Math.max(...sections.filter(({ rows }) => isPairs(rows)).map(({ rows }) => widthOf(rows, 0)));
  const blocks = sections.map(({ heading, rows }) => [heading, ...aligned(rows, labelWidth)].join('\n'));
  return `${printable([title, `  ${verdictOf(explanation)}`, '', blocks.join('\n\n')].join('\n'))}\n`;
}

type Rows = Section['rows'];

/** Rows of a label and a text; their labels have the same width in all sections. */
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

/** A terminal would execute escape sequences. */
function printable(text: string): string {
  return text.replace(/[^\P{Cc}\n]/gu, '\ufffd');
}

/** What the client does not read. */
const noMapping =
  'no mapping matches; `frontdesk check` lists them in order, `--all` says of each why it does not match';

/** The outcome in one sentence. */
export function verdictOf({ outcome, mapping, candidates, target, redirect, cors }: Explanation): string {
  if (outcome.kind === 'refused') {
    const isLost = outcome.stage === 'routing' && mapping === undefined && outcome.status === 404;
    return `refused with ${outcome.status} (${outcome.problem}): ${isLost ? noMapping : outcome.detail}`;
  }
  if (outcome.kind === 'preflight') {
    const whether = cors?.allowed ? 'with permission' : 'without permission';
    return `a preflight, answered ${whether} by the gateway (${outcome.status})`;
  }
  if (redirect !== undefined) return `redirected with ${redirect.status} to ${redirect.location}`;
  const where = target?.kind === 'remote' ? target.addresses.join(' or ') : 'in this process';
  const isShared = candidates.filter((one) => one.outcome === 'matched').length > 1;
  const name = isShared ? `${mapping?.name} (one of several: ${mapping?.reason})` : mapping?.name;
  return `Mapping ${name} sends it to ${target?.service} (${where}) as ${target?.method} ${target?.path}`;
}

function requestRows({ request }: Explanation): string[][] {
  const { path, query, scheme, host, client, identity_headers: identity, stripped } = request;
  return [
    ['path', path ?? 'cannot be read in one way only'],
    ...row('query', query),
    ['host', host === '' ? 'not given' : host],
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
    ['reason', reason],
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
  return [...rows, ['', `${others} more`, '', 'do not match the path']];
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

/** `user`: the user that the auth service is assumed to find. */
function authRows(auth: AuthPart, user: string | undefined): string[][] {
  if (!auth.asked) return [['not asked', auth.reason]];
  const { name, source, service, target, method, path, headers, body, timeout_ms: timeout, cache_ms: cache } = auth;
  const found =
    user === undefined ? '200, and no user is given' : `200 with ${auth.user_header ?? 'no header'}: ${user}`;
  return [
    ['name', `${name} (${source})`],
    ['where', target === 'in this process' ? target : `${service}, ${target}`],
    ['is sent', `${method} ${path}`],
    ...headers.map((header, index) => [index === 0 ? 'headers' : '', `${header.name}: ${header.value}`]),
    ['body', body],
    ...(timeout === undefined ? [] : [['time-out', `${timeout} ms`]]),
    ...(cache === 0 ? [] : [['kept', `a positive answer for ${cache} ms`]]),
    ['on 200', auth.on_200],
    ['refused', auth.on_refusal],
    ['no answer', auth.on_error],
    ['taken as', found],
  ];
}

function limitRows(limit: RateLimitPart): string[][] {
  if (!limit.asked) return [['not asked', limit.reason]];
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
    ['over', limit.on_over_limit],
    ['no answer', limit.on_error],
  ];
}

function limitsRows(limits: readonly LimitPart[] | undefined, by: string): string[][] {
  if (limits === undefined) return [['', `only ${by} knows its limits`]];
  if (limits.length === 0) return [['', 'no limit applies']];
  return limits.map((limit) => ['', `${limitText(limit)}${limit.source === undefined ? '' : ` (${limit.source})`}`]);
}

/** `10 per minute`, `5 per 30 seconds, token bucket of 20, shadow: never refuses`. */
function limitText(limit: LimitPart): string {
  if (limit.unlimited) return 'unlimited';
  const { requests_per_unit: most, unit, unit_multiplier: times, algorithm, burst, name, shadow_mode: shadow } = limit;
  const how = { fixed_window: '', sliding_window: 'sliding window', token_bucket: `token bucket of ${burst}` };
  return [
    `${most} per ${times === 1 ? unit : `${times} ${unit}s`}`,
    how[algorithm as keyof typeof how] ?? algorithm,
    name === undefined ? '' : `"${name}"`,
    shadow ? 'shadow: counts and never refuses' : '',
  ]
    .filter(Boolean)
    .join(', ');
}

function headerRows({ headers, headers_removed: removed }: TargetPart): string[][] {
  const of = (by: 'client' | 'gateway', label: string) =>
    headers
      .filter((header) => header.by === by)
      .map(({ name, value }, index) => [index === 0 ? label : '', `${name}: ${value}`]);
  return [
    ...of('client', 'passed on'),
    ...of('gateway', 'set'),
    ...(removed.length === 0 ? [] : [['removed', removed.join(', ')]]),
  ];
}

function acrossRows(across: AcrossPart): string[][] {
  const { retries, circuit_breakers: breakers, health_check: health, upgrades_allowed: upgrades } = across;
  return [
    ['time-out', `${duration(across.timeout_ms, 'UPSTREAM_TIMEOUT_MS')}, until the response headers`],
    ['connecting', duration(across.connect_timeout_ms, 'UPSTREAM_CONNECT_TIMEOUT_MS')],
    ['idle body', duration(across.idle_timeout_ms, undefined)],
    ['body', across.body_bytes_max === undefined ? 'no limit' : `${across.body_bytes_max} bytes at most`],
    ['balanced', across.load_balancer.replace('_', ' ')],
    ['retries', retriesText(retries)],
    [
      'at most',
      `${breakers.max_connections} connections to each address, ${breakers.max_pending_requests} requests waiting, ` +
        `${breakers.max_requests} under way, ${breakers.max_retries} retries`,
    ],
    ...(health === undefined ? [] : [['health', health]]),
    [
      'upgrades',
      upgrades.length === 0 ? 'none' : `${upgrades.join(', ')}, ${breakers.max_upgrades} connections at most`,
    ],
  ];
}

function duration({ value, from }: AcrossPart['timeout_ms'], setting: string | undefined): string {
  const where = from === 'mapping' ? 'mapping' : (setting ?? 'default');
  return `${value === 0 ? 'no limit' : `${value} ms`} (${where})`;
}

function retriesText({ on, most, per_try_timeout_ms: perTry, applies }: AcrossPart['retries']): string {
  if (most === 0) return 'none';
  const each = perTry === undefined ? '' : `, ${perTry} ms each`;
  return `${most} on ${on.join(', ')}${each}${applies ? '' : '; not for this method'}`;
}

function row(label: string, text: string): string[][] {
  return text === '' ? [] : [[label, text]];
}
