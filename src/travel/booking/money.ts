/** Money: amounts in the API, which are exact decimal strings, the price of a booking and the refund of a cancellation. */
import { z } from 'zod';
import type { Offer } from './kind.ts';
import { lengthOf, type Stay, timeText } from './stay.ts';

export const moneySchema = z
  .object({
    amount: z
      .string()
      .regex(/^\d+(?:\.\d+)?$/)
      .describe('A decimal number with as many decimal places as the currency has.'),
    currency: z
      .string()
      .regex(/^[A-Z]{3}$/)
      .describe('A currency code from ISO 4217.'),
  })
  .meta({ id: 'Money', examples: [{ amount: '120.00', currency: 'EUR' }] });

export type Money = z.infer<typeof moneySchema>;

/**
 * Returns the money schema with a description. It is wrapped because `.describe` alone would copy the schema in OpenAPI
 * instead of referring to it.
 */
export function moneyFor(description: string): z.ZodType<Money> {
  return z.nonoptional(moneySchema).describe(description);
}

/** The currencies whose minor unit is not a hundredth (ISO 4217), by the number of decimal places. */
const currenciesByDecimals = {
  0: 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF',
  3: 'BHD IQD JOD KWD LYD OMR TND',
  4: 'CLF UYW',
};
const decimals: ReadonlyMap<string, number> = new Map(
  Object.entries(currenciesByDecimals).flatMap(([places, codes]) =>
    codes.split(' ').map((code) => [code, Number(places)] as const),
  ),
);

/** Converts an amount in minor units, such as cents. `minor` must be a non-negative integer. */
export function moneyOf(minor: number, currency: string): Money {
  const places = decimals.get(currency) ?? 2;
  const digits = String(minor).padStart(places + 1, '0');
  const whole = digits.slice(0, digits.length - places);
  return { amount: places === 0 ? whole : `${whole}.${digits.slice(-places)}`, currency };
}

/** Returns the price of an offer for a whole stay, in minor units. */
export function priceOf({ price }: Pick<Offer, 'price'>, stay: Pick<Stay, 'firstDay' | 'endDay'>): number {
  return price * lengthOf(stay);
}

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
