/** The fixed window: so many hits from border to border, whenever in between. */
import type { Meter } from './meter.ts';
import { secondsUntilReset } from './windows.ts';

export const fixedWindow: Meter = Object.freeze<Meter>({
  periodSeconds: ({ windowSeconds }) => windowSeconds,
  lingers: false,
  carry(tally) {
    tally.count = 0;
  },
  room: ({ count }, { limit }) => Math.max(0, limit - count),
  spend(tally, hits) {
    tally.count += hits;
  },
  resetSeconds: (_tally, { windowSeconds }, { nowMs, number }) => secondsUntilReset(number, nowMs, windowSeconds),
});
