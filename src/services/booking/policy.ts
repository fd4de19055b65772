/** What a cancellation gives back, settled when a booking is made. */

/** Whoever cancels before that time gets so much back, in minor units. */
export interface Step {
  /** RFC 3339, UTC. */
  readonly before: string;
  readonly refund: number;
}

const freeUntilMs = 48 * 3_600_000;

/** In the order of time: all of it until 48 hours before the beginning, then half, then nothing. */
export function createPolicy(price: number, beginsMs: number, nowMs: number): readonly Step[] {
  const step = (beforeMs: number, refund: number) =>
    beforeMs > nowMs ? [{ before: new Date(beforeMs).toISOString(), refund }] : [];
  return [...step(beginsMs - freeUntilMs, price), ...step(beginsMs, Math.floor(price / 2))];
}

/** What a policy gives back at a time. */
export function refundAt(policy: readonly Step[], nowMs: number): number {
  return policy.find(({ before }) => Date.parse(before) > nowMs)?.refund ?? 0;
}
