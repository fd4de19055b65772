/** Money as clients read it: an exact text, never a floating-point number. */
export type Money = {
  /** Such as `120.00`, with as many decimals as the currency has. */
  readonly amount: string;
  /** ISO 4217. */
  readonly currency: string;
};

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
