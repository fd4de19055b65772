/** Money as clients read it: an exact text, never a floating-point number. */
import { z } from 'zod';

export const money = z
  .object({
    amount: z
      .string()
      .regex(/^\d+(?:\.\d+)?$/)
      .describe('With as many decimals as the currency has.'),
    currency: z
      .string()
      .regex(/^[A-Z]{3}$/)
      .describe('ISO 4217.'),
  })
  .meta({ id: 'Money', examples: [{ amount: '120.00', currency: 'EUR' }] });

export type Money = z.infer<typeof money>;

/** Money, and what for; wrapped, because `money.describe` would be another schema and not a reference to this one. */
export function moneyFor(description: string): z.ZodType<Money> {
  return z.nonoptional(money).describe(description);
}

/** The currencies whose minor unit is no hundredth (ISO 4217). */
const decimals: ReadonlyMap<string, number> = new Map([
  ...[
    'BIF',
    'CLP',
    'DJF',
    'GNF',
    'ISK',
    'JPY',
    'KMF',
    'KRW',
    'PYG',
    'RWF',
    'UGX',
    'VND',
    'VUV',
    'XAF',
    'XOF',
    'XPF',
  ].map((code) => [code, 0] as const),
  ...['BHD', 'IQD', 'JOD', 'KWD', 'LYD', 'OMR', 'TND'].map((code) => [code, 3] as const),
]);

/** `minor` is a whole number of minor units, such as cents, and not negative. */
export function moneyOf(minor: number, currency: string): Money {
  const places = decimals.get(currency) ?? 2;
  const digits = String(minor).padStart(places + 1, '0');
  const whole = digits.slice(0, digits.length - places);
  return { amount: places === 0 ? whole : `${whole}.${digits.slice(-places)}`, currency };
}
