/** Spans of time as records write them: `250ms`, `1.5s`, `1m30s`. */
import { type Fault, longestDelayMs, text } from './fields.ts';

/** A text that becomes whole milliseconds, from 1 up. */
export function duration() {
  return text(durationFault).transform((written) => parseDuration(written) ?? 0);
}

/** In milliseconds; undefined when the text is none. */
export function parseDuration(written: string): number | undefined {
  if (!/^(?:\d{1,12}(?:\.\d{1,6})?(?:ms|s|m|h))+$/.test(written)) return undefined;
  const parts = written.matchAll(/(?<count>[\d.]+)(?<unit>ms|s|m|h)/g);
  return Math.round(
    [...parts].reduce((sum, { groups }) => sum + Number(groups?.['count']) * unitOf(groups?.['unit']), 0),
  );
}

const unitsMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

function unitOf(unit = ''): number {
  return unitsMs[unit] ?? 0;
}

function durationFault(written: string): Fault | undefined {
  const ms = parseDuration(written);
  if (ms !== undefined && ms >= 1 && ms <= longestDelayMs) return undefined;
  return {
    message: `${JSON.stringify(written)} is not a duration from 1ms to 24 days`,
    remedy: 'Write a number with its unit, for example "250ms", "1.5s" or "1m".',
  };
}
