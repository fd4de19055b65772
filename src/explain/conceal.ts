/** Which values an explanation shows: it goes to people who may not read the configuration's values or other people's credentials. */
import { credentialHeaders } from '#config';
import type { HeaderPart } from './explanation.ts';

/** Takes names and values in turn. Shows no credentials, and no value of a header that a record sets. */
export type Conceal = (pairs: readonly string[], set?: readonly Named[]) => readonly HeaderPart[];

/** A header that a record sets; its value has no place here. */
export interface Named {
  readonly name: string;
}

export interface ConcealOptions {
  /** The headers of the client's request: names and values in turn. */
  readonly pairs: readonly string[];
  /** Values that the gateway generates for each request, such as its id. */
  readonly generated: readonly string[];
}

export function createConceal({ pairs, generated }: ConcealOptions): Conceal {
  const unsent = new Set(generated.filter((value) => !pairs.includes(value)));
  return function conceal(shown, set = []) {
    const setNames = new Set(set.map(({ name }) => name.toLowerCase()));
    return partsOf(shown).map(({ name, value }) => {
      if (setNames.has(name.toLowerCase())) return { name, value: '…' };
      if (unsent.has(value)) return { name, value: '(made for each request)' };
      return { name, value: isCredential(name) ? concealed(value) : value };
    });
  };
}

/** Whether clients send credentials in the header. */
export function isCredential(name: string): boolean {
  return credentialHeaders.includes(name.toLowerCase());
}

function partsOf(pairs: readonly string[]): readonly HeaderPart[] {
  return pairs.flatMap((name, index) => (index % 2 === 0 ? [{ name, value: pairs[index + 1] ?? '' }] : []));
}

/** Keeps the scheme: `Basic …`. */
function concealed(value: string): string {
  const [, scheme] = /^([\w-]+) +\S/.exec(value) ?? [];
  return scheme === undefined ? '…' : `${scheme} …`;
}
