/** Kinds of settings, such as ports, flags and lists: how text is parsed, and what values are valid. */
import * as z from 'zod';
import { delayMsMax } from '#foundation';
import { isHostAndPort } from '../fields/addresses.ts';
import { described } from '../fields/json-schema.ts';

/** One setting. `fromText` returns text that it cannot parse unchanged, so that the schema rejects it. */
export interface Setting<T> {
  readonly schema: z.ZodType<T>;
  readonly default: T;
  readonly fromText: (text: string) => unknown;
  /** Completes the message "expected …" for text. */
  readonly expects: string;
  /** Completes the message "expected …" for a value that a program passes. */
  readonly expectsValue: string;
  readonly description: string;
}

/** Settings by their camelCase names. Environment variables have the same names in upper case (`RATELIMIT_PORT`). */
export type SettingTable = Readonly<Record<string, Setting<unknown>>>;

/** Returns a function that defines settings of one kind. A default of undefined leaves the setting unset. */
function kind<T>(schema: z.ZodType<T>, fromText: Setting<T>['fromText'], expects: string, expectsValue = expects) {
  function setting(defaultValue: T, description: string): Setting<T>;
  function setting(defaultValue: undefined, description: string): Setting<T | undefined>;
  function setting(defaultValue: T | undefined, description: string): Setting<T | undefined> {
    return { schema, default: defaultValue, fromText, expects, expectsValue, description };
  }
  return setting;
}

export function textKind(accepts: (text: string) => boolean, expects: string) {
  return kind(z.string().refine(accepts), unchanged, expects);
}

export function choiceKind<const T extends string>(choices: readonly T[]) {
  return kind<T>(z.enum(choices), unchanged, `one of ${choices.join(', ')}`);
}

export function numberKind(min: number, max: number, unit = '') {
  const schema = z.number().refine((value) => Number.isInteger(value) && value >= min && value <= max);
  described(schema, { type: 'integer', minimum: min, maximum: max });
  return kind(schema, numberFromText, `a whole number ${unit}from ${min} to ${max}`);
}

export const port = numberKind(0, 65535);
export const count = numberKind(1, 10_000_000);
export const bytes = numberKind(1, delayMsMax, 'of bytes ');
export const delayMs = numberKind(0, delayMsMax, 'of milliseconds ');
export const timeoutMs = numberKind(1, delayMsMax, 'of milliseconds ');

export const flag = kind(z.boolean(), flagFromText, 'true or false');

/** A comma-separated list in text, an array in options. */
export function listKind(accepts: (item: string) => boolean, items: string) {
  const schema = z.array(z.string().refine(accepts));
  return kind<readonly string[]>(schema, itemsFromText, `${items}, separated by commas`, `a list of ${items}`);
}

/** Maps each name to its address, `host:port`, or to the addresses of its replicas. */
export type AddressBook = Readonly<Record<string, string | readonly string[]>>;

const address = z.string().refine(isHostAndPort);
const addresses = z
  .array(address)
  .min(1)
  .refine((several) => new Set(several).size === several.length);

/** `name=host:port,…` in text, where a name can be repeated. A plain object in options. */
export const addressBook = kind<AddressBook>(
  z.record(z.string().regex(/^[\w.-]+$/), z.union([address, addresses])),
  addressesFromText,
  'name=host:port, separated by commas, without repeating an address of a name',
  "a map such as { orders: '10.0.0.1:9001' }, from each name to its host:port or a list of several without repetition",
);

function unchanged(text: string): string {
  return text;
}

/** Stricter than `Number`, which would accept '', ' 8080', '0x1F90' and '8e3' as ports. */
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

/** Parses addresses into an object without a prototype, so that `__proto__` is a name like any other. */
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
