/** Shows times and amounts of money as people write them, with the value of the API beside them. */
import { isMap } from '#foundation';
import { html, type Markup } from './html.ts';

/** How much room there is: `short` shows the value of the API only when the pointer rests on the text. */
export type Room = 'ample' | 'short';

/** Returns undefined for text that is neither a date nor a time of RFC 3339. */
export function timeMarkup(text: string, room: Room): Markup | undefined {
  const shown = readableTime(text);
  if (shown === undefined) return undefined;
  return room === 'short'
    ? html`<time datetime="${text}" title="${text}">${shown}</time>`
    : html`<time datetime="${text}">${shown}</time> <span class="key">${text}</span>`;
}

/** Returns undefined unless the value has an amount in decimals and a currency code, and nothing else. */
export function moneyMarkup(value: unknown, room: Room): Markup | undefined {
  if (!isMap(value) || Object.keys(value).length !== 2) return undefined;
  const { amount, currency } = value;
  if (typeof amount !== 'string' || typeof currency !== 'string') return undefined;
  if (!/^-?\d+(?:\.\d+)?$/.test(amount) || !/^[A-Z]{3}$/.test(currency)) return undefined;
  const [raw, shown] = [`${amount} ${currency}`, readableMoney(amount, currency)];
  return room === 'short'
    ? html`<data value="${amount}" title="${raw}">${shown}</data>`
    : html`<data value="${amount}">${shown}</data> <span class="key">${raw}</span>`;
}

const timePattern =
  /^(?<date>\d{4}-(?<month>\d\d)-(?<day>\d\d))(?:T(?<clock>\d\d:\d\d)(?::\d\d(?:\.\d+)?)?(?<zone>Z|[+-]\d\d:\d\d))?$/;

const weekdays = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];
const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** `Mon 23 Nov 2026`, or `Mon 23 Nov 2026, 11:43 UTC`. The time zone stays that of the text. */
function readableTime(text: string): string | undefined {
  const { date = '', month = '', day = '', clock, zone = '' } = timePattern.exec(text)?.groups ?? {};
  const midnight = new Date(date);
  const weekday = weekdays[midnight.getUTCDay()];
  if (weekday === undefined || midnight.getUTCDate() !== Number(day)) return undefined;
  const shownDate = `${weekday} ${Number(day)} ${months[Number(month) - 1]} ${date.slice(0, 4)}`;
  return clock === undefined ? shownDate : `${shownDate}, ${clock} ${zone === 'Z' ? 'UTC' : zone}`;
}

/** The signs that mean a single currency to most readers. */
const signs: Readonly<Record<string, string>> = { EUR: '€', GBP: '£', INR: '₹', JPY: '¥', USD: '$' };

/** `€1,234.50`, or `CHF 1,234.50` with a space that does not break. */
function readableMoney(amount: string, currency: string): string {
  const [, minus = '', whole = '', decimals = ''] = /^(-?)(\d+)(.*)$/.exec(amount) ?? [];
  const grouped = whole.replace(/\B(?=(?:\d{3})+$)/g, ',');
  return `${minus}${signs[currency] ?? `${currency}\u00a0`}${grouped}${decimals}`;
}
