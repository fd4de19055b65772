/** Stays, from what a client wrote to the days that they take. */
import { z } from 'zod';
import { dayMs, type Stay, type Trade } from './trade.ts';

export const daysMax = 90;
/** Far enough for anybody, and far from where years have more than four digits. */
const endMax = '2200-01-01';

/** What is wrong with one end of a stay. */
export interface StayFault {
  readonly name: string;
  readonly detail: string;
}

export type StayReading =
  | { readonly ok: true; readonly stay: Stay | undefined }
  | { readonly ok: false; readonly faults: readonly StayFault[] };

/** Both ends or none of them, each as `endSchema` has it. */
export function readStay(trade: Trade, given: Readonly<Record<string, string | undefined>>): StayReading {
  const missing = trade.ends.filter((name) => given[name] === undefined);
  if (missing.length === 2) return { ok: true, stay: undefined };
  const both = `give both ${trade.ends.join(' and ')}, or neither`;
  if (missing.length === 1) return refuse(missing, `is missing: ${both}`);
  const [fromMs, toMs] = trade.ends.map((name) => trade.readEnd(given[name] ?? ''));
  if (fromMs === undefined || toMs === undefined) return refuse(trade.ends, `must be like ${trade.endExample}`);
  const stay = stayOf(fromMs, toMs);
  const fault = faultOf(trade, stay);
  return fault === undefined ? { ok: true, stay } : { ok: false, faults: [fault] };
}

function refuse(names: readonly string[], detail: string): StayReading {
  return { ok: false, faults: names.map((name) => ({ name, detail })) };
}

function faultOf(trade: Trade, stay: Stay): StayFault | undefined {
  const [from, to] = trade.ends;
  if (stay.toMs <= stay.fromMs) return { name: to, detail: `must be after ${from}` };
  if (stay.toMs > Date.parse(endMax)) return { name: to, detail: `must not be after ${endMax}` };
  if (lengthOf(stay) <= daysMax) return undefined;
  return { name: to, detail: `must be at most ${daysMax} ${trade.dayName}s after ${from}` };
}

/** An end of a stay in a request. */
export function endSchema({ readEnd, endFormat, endExample }: Trade) {
  const text = z.string().refine((end) => readEnd(end) !== undefined, `must be like ${endExample}`);
  return text.meta({ format: endFormat, examples: [endExample] });
}

/** Whether a booking is only held at first. */
export const holdSchema = z
  .boolean()
  .default(false)
  .describe('Makes a pending booking, which is free again at `expires_at` unless it is confirmed before.');

/** Every calendar day (UTC) that it touches; the instant at which it ends is no part of it. */
export function stayOf(fromMs: number, toMs: number): Stay {
  return { fromMs, toMs, firstDay: Math.floor(fromMs / dayMs), endDay: Math.ceil(toMs / dayMs) };
}

export function shiftStay({ fromMs, toMs }: Stay, days: number): Stay {
  return stayOf(fromMs + days * dayMs, toMs + days * dayMs);
}

export function lengthOf({ firstDay, endDay }: Stay): number {
  return endDay - firstDay;
}
