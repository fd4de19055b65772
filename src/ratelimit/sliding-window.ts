/** The sliding window counter: the window before counts as far as it overlaps the time that has just gone by. */
import type { Hit } from './counters.ts';
import type { Meter, Moment, Tally } from './meter.ts';
import { secondsOf } from './windows.ts';

export const slidingWindow: Meter = Object.freeze<Meter>({
  periodSeconds: ({ windowSeconds }) => windowSeconds,
  lingers: true,
  carry(tally) {
    tally.before = tally.count;
    tally.count = 0;
  },
  room({ count, before }, hit, moment) {
    // Rounded up: a fraction of a hit takes the place of a whole one.
    return Math.max(0, hit.limit - count - Math.ceil((before * leftMs(hit, moment)) / windowMs(hit)));
  },
  spend(tally, hits) {
    tally.count += hits;
  },
  resetSeconds(tally, hit, moment, over) {
    return secondsOf((over ? untilRoomMs(tally, hit, moment) : undefined) ?? untilRestoredMs(tally, hit, moment));
  },
});

/** Undefined when the hit is more than the limit. */
function untilRoomMs({ count, before }: Tally, hit: Hit, moment: Moment): number | undefined {
  const spare = hit.limit - hit.hits;
  if (spare < 0) return undefined;
  if (count <= spare) return leftMs(hit, moment) - overlapMs(before, spare - count, hit);
  return leftMs(hit, moment) + windowMs(hit) - overlapMs(count, spare, hit);
}

/** The longest overlap at which `hits` of a window count for no more than `room`. */
function overlapMs(hits: number, room: number, hit: Hit): number {
  return hits <= room ? windowMs(hit) : Math.floor((room * windowMs(hit)) / hits);
}

function untilRestoredMs({ count, before }: Tally, hit: Hit, moment: Moment): number {
  if (count > 0) return leftMs(hit, moment) + windowMs(hit);
  return before > 0 ? leftMs(hit, moment) : 0;
}

/** Until the window ends; the whole of it for a clock that has stepped back over its beginning. */
function leftMs(hit: Hit, { nowMs, number }: Moment): number {
  return Math.min(windowMs(hit), (number + 1) * windowMs(hit) - nowMs);
}

function windowMs({ windowSeconds }: Hit): number {
  return windowSeconds * 1_000;
}
