/** Kinds of settings (port, flag, list, …): how text is read, what is accepted, and how errors describe it. */
import * as z from 'zod';
import { isHostAndPort } from '../fields/addresses.ts';

/** One setting. `fromText` leaves text that it cannot read as it is, so that the one schema refuses it. */
export interface Setting<T> {
  readonly schema: z.ZodType<T>;
  readonly default: T;
  readonly fromText: (text: string) => unknown;
  /** Ends the sentence "expected …". */
  readonly expects: string;
  readonly description: string;
}

/** A Node timer with a longer delay would fire at once. */
const timeoutMsMax = 2_147_483_647;

export function textSetting<T extends string | undefined>(
  accepts: (text: string) => boolean,
  expects: string,
): (defaultValue: T, description: string) => Setting<string | T> {
  const schema = z.string().refine(accepts);
  return (defaultValue, description) => ({
    schema,
    default: defaultValue,
    fromText: same,
    expects,
    description,
  });
}

export function choice<const T extends string>(
  choices: readonly T[],
  defaultValue: T,
  description: string,
): Setting<T> {
  return {
    schema: z.enum(choices),
    default: defaultValue,
    fromText: same,
    expects: `one of ${choices.join(', ')}`,
    description,
  };
}

function wholeNumber(min: number, max: number, expects: string) {
  const schema = z.number().refine((value) => Number.isInteger(value) && value >= min && value <= max);
  return (defaultValue: number, description: string): Setting<number> => ({
    schema,
    default: defaultValue,
    fromText: numberFromText,
    expects,
    description,
  });
}

export const port = wholeNumber(0, 65535, 'a whole number from 0 to 65535');
export const count = wholeNumber(1, 10_000_000, 'a whole number from 1 to 10000000');
export const bytes = wholeNumber(1, timeoutMsMax, 'a whole number of bytes from 1 to 2147483647');
export const timeoutMs = wholeNumber(1, timeoutMsMax, 'a whole number of milliseconds from 1 to 2147483647');

/** Unset: no such listener. */
export function optionalPort(description: string): Setting<number | undefined> {
  return { ...port(0, description), default: undefined };
}

export function flag(defaultValue: boolean, description: string): Setting<boolean> {
  return {
    schema: z.boolean(),
    default: defaultValue,
    fromText: flagFromText,
    expects: 'true or false',
    description,
  };
}

/** A comma-separated list in text, an array in options. */
export function list(
  accepts: (item: string) => boolean,
  expects: string,
): (description: string) => Setting<readonly string[]> {
  const schema = z.array(z.string().refine(accepts));
  return (description) => ({
    schema,
    default: [],
    fromText: itemsFromText,
    expects,
    description,
  });
}

/** The address of each name: `host:port`, or several for replicas. */
export type AddressBook = Readonly<Record<string, string | readonly string[]>>;

/** `name=host:port,…` in text, where a name may come several times; a plain object in options. */
export function addressBook(description: string): Setting<AddressBook> {
  const address = z.string().refine(isHostAndPort);
  const several = z
    .array(address)
    .min(1)
    .refine((addresses) => new Set(addresses).size === addresses.length);
  return {
    schema: z.record(z.string().regex(/^[\w-]+$/), z.union([address, several])),
    default: {},
    fromText: addressesFromText,
    expects: 'name=host:port, with commas between several, each address of a name once',
    description,
  };
}

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
