/** What a cancellation gives back, settled when a booking is made. */
import { timeText } from './stay.ts';

/** A cancellation before that time refunds so much, in minor units. */
export interface RefundStep {
  /** RFC 3339, UTC. */
  readonly before: string;
  readonly refund: number;
}

const fullRefundUntilMs = 48 * 3_600_000;

/** Earliest first: the whole price until 48 hours before the beginning, then half, then nothing. */
export function createRefundSteps(price: number, beginsMs: number, nowMs: number): readonly RefundStep[] {
  const step = (beforeMs: number, refund: number) => (beforeMs > nowMs ? [{ before: timeText(beforeMs), refund }] : []);
  return [...step(beginsMs - fullRefundUntilMs, price), ...step(beginsMs, Math.floor(price / 2))];
}

export function refundAt(steps: readonly RefundStep[], nowMs: number): number {
  return steps.find(({ before }) => Date.parse(before) > nowMs)?.refund ?? 0;
}
