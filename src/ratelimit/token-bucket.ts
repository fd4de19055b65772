/** The token bucket, as the generic cell rate algorithm (ITU-T I.371): all it remembers is when the bucket will be full. */
import type { Hit } from './counters.ts';
import type { Meter, Moment, Tally } from './meter.ts';
import { secondsOf } from './windows.ts';

export const tokenBucket: Meter = Object.freeze<Meter>({
  periodSeconds: (hit) => (hit.limit === 0 ? hit.windowSeconds : Math.max(1, Math.ceil(fullUs(hit) / 1_000_000))),
  lingers: true,
  carry() {},
  room: (tally, hit, moment) =>
    hit.limit === 0 ? 0 : Math.floor((fullUs(hit) - emptyUs(tally, hit, moment)) / intervalUs(hit)),
  spend(tally, hits, hit, moment) {
    if (hits !== 0) tally.count = nowUs(moment) + emptyUs(tally, hit, moment) + hits * intervalUs(hit);
  },
  resetSeconds(tally, hit, moment, over) {
    if (hit.limit === 0) return 1;
    const empty = emptyUs(tally, hit, moment);
    const waits = over && hit.hits <= hit.burst;
    return secondsOf((waits ? empty + hit.hits * intervalUs(hit) - fullUs(hit) : empty) / 1_000);
  },
});

/** The time that it takes to fill up, held between nothing and a whole bucket: a clock that stepped back must not empty it further. */
function emptyUs({ count }: Tally, hit: Hit, moment: Moment): number {
  return Math.min(Math.max(count - nowUs(moment), 0), fullUs(hit));
}

/** What one hit takes to be restored, rounded up: the rate is never more than the limit. */
function intervalUs({ windowSeconds, limit }: Hit): number {
  return Math.ceil((windowSeconds * 1_000_000) / limit);
}

function fullUs(hit: Hit): number {
  return hit.burst * intervalUs(hit);
}

function nowUs({ nowMs }: Moment): number {
  return Math.floor(nowMs * 1_000);
}
