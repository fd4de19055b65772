/** Where hits are counted: the port between the decision and its memory, in this process or shared by many. */

/** What one limit asks of its counter. */
export interface Hit {
  readonly key: string;
  /** The same for every hit of a key. */
  readonly windowSeconds: number;
  readonly limit: number;
  readonly hits: number;
}

/** What became of a hit. */
export interface Count {
  /** The window has no room for the hit. */
  readonly over: boolean;
  /** Hits that the window still has room for. */
  readonly remaining: number;
  /** Whole seconds until the window ends, at least 1. */
  readonly resetSeconds: number;
}

/**
 * Decides all hits of a request in one call: only if every one of them has room is any of them counted, so that a denied
 * request costs its other limits nothing. One call is one atomic step, and to a shared memory one round trip.
 * The time is the memory's own, so that processes that share it agree. Answers in the order of `hits`.
 */
export interface Counters {
  take(hits: readonly Hit[]): readonly Count[] | Promise<readonly Count[]>;
}
