/** The limits that are in force, as people read them: a line each. */
import type { Limit, LimitDescriptor, LimitDomain } from '#config';

/** In the manner of envoyproxy/ratelimit's `/rlconfig`: `domain.key_value.key: unit=MINUTE requests_per_unit=10`. */
export function formatLimits(domains: readonly LimitDomain[]): string {
  const lines = domains.flatMap(({ domain, descriptors }) => linesBelow(domain, descriptors));
  return lines.map((line) => `${line}\n`).join('');
}

function linesBelow(path: string, descriptors: readonly LimitDescriptor[]): string[] {
  return descriptors.flatMap(({ key, value, limits, shareThreshold, descriptors: below }) => {
    const here = `${path}.${key}${value === undefined ? '' : `_${value}`}`;
    const shared = shareThreshold ? ', share_threshold: true' : '';
    return [...limits.map((limit) => `${onOneLine(here)}: ${limitText(limit)}${shared}`), ...linesBelow(here, below)];
  });
}

function limitText(limit: Limit): string {
  return [rateText(limit), ...details(limit)].join(', ');
}

function rateText({ unit, unitMultiplier, requestsPerUnit, unlimited }: Limit): string {
  if (unlimited) return 'unlimited';
  const multiplier = unitMultiplier === 1 ? '' : ` unit_multiplier=${unitMultiplier}`;
  return `unit=${unit.toUpperCase()}${multiplier} requests_per_unit=${requestsPerUnit}`;
}

function details({ name, replaces, shadowMode, algorithm, burst }: Limit): string[] {
  return [
    ...(name === undefined ? [] : [`name: ${onOneLine(name)}`]),
    ...(replaces.length === 0 ? [] : [`replaces: ${onOneLine(replaces.join(' '))}`]),
    ...(algorithm === 'fixed_window' ? [] : [`algorithm: ${algorithm}`]),
    ...(burst === undefined ? [] : [`burst: ${burst}`]),
    `shadow_mode: ${shadowMode}`,
  ];
}

/** A value may hold a line break, and must not pass for a line of its own. */
function onOneLine(text: string): string {
  return text.replace(/[\r\n\u2028\u2029]/g, ' ');
}
