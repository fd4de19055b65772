/** What the auth service and the rate-limit service have to do with an explained request, row by row. */
import type { AuthPart, LimitPart, RateLimitPart } from '#gateway';

/** `user`: who the auth service is taken to find. */
export function authRows(auth: AuthPart, user: string | undefined): string[][] {
  if (!auth.asked) return [['nobody', auth.reason]];
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

export function limitRows(limit: RateLimitPart): string[][] {
  if (!limit.asked) return [['nothing', limit.reason]];
  const { name, source, domain, decided_by: by, descriptors } = limit;
  return [
    ['name', `${name} (${source})`],
    ['decided by', by],
    ['domain', domain],
    ...descriptors.flatMap(({ entries, limits }) => [
      ['descriptor', entries.map(({ key, value }) => `${key}=${value}`).join(' › ')],
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
