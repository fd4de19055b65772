/** What arrives at the service of an explained request, and how long it may take, row by row. */
import type { TargetPart } from '#gateway';

type AcrossPart = NonNullable<TargetPart['across']>;

export function headerRows({ headers, headers_removed: removed }: TargetPart): string[][] {
  const of = (by: 'client' | 'gateway', label: string) =>
    headers
      .filter((header) => header.by === by)
      .map(({ name, value }, index) => [index === 0 ? label : '', `${name}: ${value}`]);
  return [
    ...of('client', 'passed on'),
    ...of('gateway', 'set'),
    ...(removed.length === 0 ? [] : [['taken off', removed.join(', ')]]),
  ];
}

export function acrossRows(across: AcrossPart): string[][] {
  const { retries, circuit_breakers: breakers, health_check: health, upgrades_allowed: upgrades } = across;
  return [
    ['time-out', `${duration(across.timeout_ms, 'UPSTREAM_TIMEOUT_MS')}, until the response headers`],
    ['connecting', duration(across.connect_timeout_ms, 'UPSTREAM_CONNECT_TIMEOUT_MS')],
    ['resting body', duration(across.idle_timeout_ms, undefined)],
    ['body', `${across.body_bytes_max} bytes at most (BODY_BYTES_MAX)`],
    ['balanced', across.load_balancer.replace('_', ' ')],
    ['retries', retriesText(retries)],
    [
      'at most',
      `${breakers.max_connections} connections to each address, ${breakers.max_pending_requests} requests waiting, ` +
        `${breakers.max_requests} under way, ${breakers.max_retries} retries`,
    ],
    ...(health === undefined ? [] : [['health', health]]),
    ['upgrades', upgrades.length === 0 ? 'none' : upgrades.join(', ')],
  ];
}

function duration({ value, from }: AcrossPart['timeout_ms'], setting: string | undefined): string {
  const where = from === 'mapping' ? 'mapping' : (setting ?? 'default');
  return `${value === 0 ? 'without end' : `${value} ms`} (${where})`;
}

function retriesText({ on, most, per_try_timeout_ms: perTry, applies }: AcrossPart['retries']): string {
  if (most === 0) return 'none';
  const each = perTry === undefined ? '' : `, ${perTry} ms each`;
  return `${most} on ${on.join(', ')}${each}${applies ? '' : '; not for this method'}`;
}
