/** The refund steps of a cancellation, which are fixed when a booking is made. */
import { timeText } from './stay.ts';

/** Cancelling before the time `before` refunds the amount `refund`. */
export interface RefundStep {
  /** RFC 3339, UTC. */
  readonly before: string;
  /** In minor units. */
  readonly refund: number;
}

const fullRefundUntilMs = 48 * 3_600_000;

/**
 * Returns the steps that are still ahead, earliest first: the full price until 48 hours before the stay begins, half of
 * it until the stay begins, then nothing.
 */
export function createRefundSteps(price: number, beginsMs: number, nowMs: number): readonly RefundStep[] {
  const step = (beforeMs: number, refund: number) => (beforeMs > nowMs ? [{ before: timeText(beforeMs), refund }] : []);
  return [...step(beginsMs - fullRefundUntilMs, price), ...step(beginsMs, Math.floor(price / 2))];
}

export function refundAt(steps: readonly RefundStep[], nowMs: number): number {
  return steps.find(({ before }) => Date.parse(before) > nowMs)?.refund ?? 0;
}
