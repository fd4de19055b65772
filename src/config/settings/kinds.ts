/** Kinds of settings (port, flag, list, …): how text is read, what is accepted, and how errors describe it. */
import * as z from 'zod';
import { isHostAndPort } from '../fields/addresses.ts';
import { delayMsMax } from '../fields/values.ts';

/** One setting. `fromText` leaves text that it cannot read as it is, so that the one schema refuses it. */
export interface Setting<T> {
  readonly schema: z.ZodType<T>;
  readonly default: T;
  readonly fromText: (text: string) => unknown;
  /** Ends the sentence "expected …" about text. */
  readonly expects: string;
  /** The same about a value that a program hands in. */
  readonly expectsValue: string;
  readonly description: string;
}

/** Makes the settings of one kind, each with a default (undefined: unset) and a description. */
function kind<T>(schema: z.ZodType<T>, fromText: Setting<T>['fromText'], expects: string, expectsValue = expects) {
  function setting(defaultValue: T, description: string): Setting<T>;
  function setting(defaultValue: undefined, description: string): Setting<T | undefined>;
  function setting(defaultValue: T | undefined, description: string): Setting<T | undefined> {
    return { schema, default: defaultValue, fromText, expects, expectsValue, description };
  }
  return setting;
}

export function textKind(accepts: (text: string) => boolean, expects: string) {
  return kind(z.string().refine(accepts), same, expects);
}

export function choiceKind<const T extends string>(choices: readonly T[]) {
  return kind<T>(z.enum(choices), same, `one of ${choices.join(', ')}`);
}

function numberKind(min: number, max: number, unit = '') {
  const schema = z.number().refine((value) => Number.isInteger(value) && value >= min && value <= max);
  return kind(schema, numberFromText, `a whole number ${unit}from ${min} to ${max}`);
}

export const port = numberKind(0, 65535);
export const count = numberKind(1, 10_000_000);
export const bytes = numberKind(1, delayMsMax, 'of bytes ');
/** The price of a booking so long still fits into 32 bits. */
export const days = numberKind(1, 200);
export const delayMs = numberKind(0, delayMsMax, 'of milliseconds ');
export const timeoutMs = numberKind(1, delayMsMax, 'of milliseconds ');

export const flag = kind(z.boolean(), flagFromText, 'true or false');

/** A comma-separated list in text, an array in options. */
export function listKind(accepts: (item: string) => boolean, items: string) {
  const schema = z.array(z.string().refine(accepts));
  return kind<readonly string[]>(schema, itemsFromText, `${items}, with commas between them`, `a list of ${items}`);
}

/** The address of each name: `host:port`, or several for replicas. */
export type AddressBook = Readonly<Record<string, string | readonly string[]>>;

const address = z.string().refine(isHostAndPort);
const addresses = z
  .array(address)
  .min(1)
  .refine((several) => new Set(several).size === several.length);

/** `name=host:port,…` in text, where a name may come several times; a plain object in options. */
export const addressBook = kind<AddressBook>(
  z.record(z.string().regex(/^[\w-]+$/), z.union([address, addresses])),
  addressesFromText,
  'name=host:port, with commas between several, each address of a name once',
  "a map such as { hotel: '10.0.0.1:9001' }, of each name to its host:port, or to a list of several, each once",
);

function same(text: string): string {
  return text;
}

/** Strict: `Number` would take '', ' 8080', '0x1F90' and '8e3' for ports. */
function numberFromText(text: string): unknown {
  return /^\d+$/.test(text) ? Number(text) : text;
}

function flagFromText(text: string): unknown {
  const read = z.stringbool().safeParse(text);
  return read.success ? read.data : text;
}

function itemsFromText(text: string): readonly string[] {
  return text.split(',').map((item) => item.trim());
}

/** A name with one address keeps it plain. Without a prototype: `__proto__` is a name like any other. */
function addressesFromText(text: string): unknown {
  const book: Record<string, string | string[]> = Object.create(null);
  for (const item of itemsFromText(text)) {
    const [name = '', ...rest] = item.split('=');
    const address = rest.join('=');
    const known = book[name];
    book[name] = known === undefined ? address : [known, address].flat();
  }
  return book;
}
