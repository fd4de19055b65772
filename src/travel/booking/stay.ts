/** Stays: parses and validates their start and end, and computes the days that they occupy. */
import { z } from 'zod';
import type { BookingKind } from './kind.ts';

/** A period, and the days that it occupies: `firstDay` up to but excluding `endDay`, in UTC days since 1970. */
export interface Stay {
  readonly fromMs: number;
  readonly toMs: number;
  readonly firstDay: number;
  readonly endDay: number;
}

export const dayMs = 86_400_000;
/** How long a hold lasts. */
export const holdMs = 15 * 60_000;
/** A day that is later than any real booking, and whose year still has four digits. */
const endMax = '2200-01-01';

export type ParsedStay =
  | { readonly ok: true; readonly stay: Stay | undefined }
  | { readonly ok: false; readonly faults: readonly StayFault[] };

export interface StayFault {
  /** One of the kind's `stay.fields`. */
  readonly field: string;
  readonly detail: string;
}

/** Parses the start and end of a stay. The stay is undefined when both are missing. */
export function parseStay(
  kind: BookingKind,
  daysMax: number,
  given: Readonly<Record<string, string | undefined>>,
): ParsedStay {
  const { fields, parse } = kind.stay;
  if (fields.every((field) => given[field] === undefined)) return { ok: true, stay: undefined };
  const [fromMs, toMs] = fields.map((field) => parse(given[field] ?? ''));
  if (fromMs === undefined || toMs === undefined)
    return { ok: false, faults: fields.flatMap((field) => faultsOfEnd(kind, field, given[field])) };
  const stay = stayOf(fromMs, toMs);
  const detail = faultOf(kind, daysMax, stay);
  return detail === undefined ? { ok: true, stay } : { ok: false, faults: [{ field: fields[1], detail }] };
}

/** Returns what is wrong with the start or the end alone. */
function faultsOfEnd({ stay }: BookingKind, field: string, text: string | undefined): readonly StayFault[] {
  if (text === undefined) return [{ field, detail: `is missing: give both ${stay.fields.join(' and ')}, or neither` }];
  return stay.parse(text) === undefined ? [{ field, detail: malformedEnd(stay, text) }] : [];
}

function malformedEnd({ parse, examples: [example] }: BookingKind['stay'], text: string): string {
  // In a query, + stands for a space.
  if (parse(text.replace(' ', '+')) !== undefined) return 'has a space instead of +: write + as %2B in a URL';
  const [day] = /^\d{4}-\d\d-\d\d/.exec(text) ?? [];
  return day !== undefined && !isDay(day) ? `${day} is not a date in the calendar` : `must be like ${example}`;
}

/** Checks a date such as `2031-05-12`. Rejects 30 February, which JavaScript reads as 2 March. */
export function isDay(day: string): boolean {
  const date = new Date(day);
  return date.getUTCMonth() + 1 === Number(day.slice(5, 7)) && date.getUTCDate() === Number(day.slice(8));
}

export const inThePast = 'is in the past';

/** Returns what is wrong with the end of the stay. */
function faultOf({ dayName, stay: { fields } }: BookingKind, daysMax: number, stay: Stay): string | undefined {
  const [from] = fields;
  if (stay.toMs <= stay.fromMs) return `must be after ${from}`;
  if (endsTooLate(stay)) return `must not be after ${endMax}`;
  return lengthOf(stay) > daysMax ? `must be at most ${daysMax} ${dayName}s after ${from}` : undefined;
}

/** True if the stay ends later than any booking may. */
export function endsTooLate({ toMs }: Stay): boolean {
  return toMs > Date.parse(endMax);
}

/** Returns the schemas of a stay's start and end, for request bodies and responses. */
export function stayEndSchemas({ stay }: BookingKind) {
  const { parse, format, examples } = stay;
  const error = ({ input }: { readonly input?: unknown }) => malformedEnd(stay, String(input));
  const end = z.string().refine((text) => parse(text) !== undefined, { error });
  const [from, to] = examples;
  return [end.meta({ format, examples: [from] }), end.meta({ format, examples: [to] })] as const;
}

/** A stay occupies every UTC calendar day that it touches. Its end is exclusive. */
export function stayOf(fromMs: number, toMs: number): Stay {
  return { fromMs, toMs, firstDay: Math.floor(fromMs / dayMs), endDay: Math.ceil(toMs / dayMs) };
}

export function shiftStay({ fromMs, toMs }: Stay, days: number): Stay {
  return stayOf(fromMs + days * dayMs, toMs + days * dayMs);
}

export function lengthOf({ firstDay, endDay }: Pick<Stay, 'firstDay' | 'endDay'>): number {
  return endDay - firstDay;
}

/** Formats a time as the tables store and compare it: RFC 3339 in UTC. */
export function timeText(ms: number): string {
  return new Date(ms).toISOString();
}
