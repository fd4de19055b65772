/** How an algorithm reads and spends a counter: whole numbers in, whole numbers out, no clock of its own. */
import type { Algorithm } from '#config';
import type { Hit } from './counters.ts';
import { fixedWindow } from './fixed-window.ts';
import { slidingWindow } from './sliding-window.ts';
import { tokenBucket } from './token-bucket.ts';

/** What is remembered of a key. */
export interface Tally {
  /** Hits of the present window; of a token bucket, when it will be full again, in microseconds since the epoch. */
  count: number;
  /** Hits of the window before. */
  before: number;
}

/** Now, in milliseconds since the epoch, and the number of the period that it is taken to fall in. */
export interface Moment {
  readonly nowMs: number;
  readonly number: number;
}

export interface Meter {
  /** What was counted in one period means nothing after its end, or with `lingers` after the end of the next. */
  periodSeconds(hit: Hit): number;
  readonly lingers: boolean;
  /** Turns the tally of a period into that of the next. */
  carry(tally: Tally): void;
  /** How many more hits fit. */
  room(tally: Tally, hit: Hit, moment: Moment): number;
  /** `hits` is not more than the room; below 0 it gives back what was taken at the same moment. */
  spend(tally: Tally, hits: number, hit: Hit, moment: Moment): void;
  /** Whole seconds, as `Count.resetSeconds` has them; `over`: until the hit fits. */
  resetSeconds(tally: Tally, hit: Hit, moment: Moment, over: boolean): number;
}

export const meters: Readonly<Record<Algorithm, Meter>> = Object.freeze({
  fixed_window: fixedWindow,
  sliding_window: slidingWindow,
  token_bucket: tokenBucket,
});
