/** Hides credentials in an explanation, wherever they would appear, since explanations are shown to other people. */
import { namesSecret } from '#config';
import type { HeaderPart } from './explanation.ts';

export interface Conceal {
  /** Takes names and values in turn. Shows no value of a header that a record sets, whatever its name. */
  readonly headers: (pairs: readonly string[], set?: readonly Named[]) => readonly HeaderPart[];
  /** The text without the credentials that the client sent. */
  readonly text: (text: string) => string;
}

/** A header that a record sets; its value has no place here. */
export interface Named {
  readonly name: string;
}

/** Shorter values occur in any text by chance. */
const lengthMin = 4;

export interface ConcealOptions {
  /** The headers of the client's request: names and values in turn. */
  readonly pairs: readonly string[];
  /** Values that the gateway generates for each request, such as its id. */
  readonly generated: readonly string[];
  /** Lower-case names that may look like a secret's but hold a user's name. */
  readonly identityHeaders: readonly string[];
}

export function createConceal({ pairs, generated, identityHeaders }: ConcealOptions): Conceal {
  const open = new Set([...identityHeaders, 'x-envoy-auth-partial-body']);
  const isSecret = (name: string) => namesSecret(name) && !open.has(name);
  const known = pairs
    .filter((_, index) => index % 2 === 1 && isSecret(pairs[index - 1] ?? ''))
    .flatMap((value) => [value, value.replace(/^\S+ +/, '')])
    .filter((value) => value.length >= lengthMin);
  const unsent = new Set(generated.filter((value) => !pairs.includes(value)));
  return Object.freeze({
    headers(shown: readonly string[], set: readonly Named[] = []) {
      const setNames = new Set(set.map(({ name }) => name.toLowerCase()));
      return partsOf(shown).map(({ name, value }) => {
        if (setNames.has(name.toLowerCase())) return { name, value: '…' };
        if (unsent.has(value)) return { name, value: '(made for each request)' };
        return { name, value: isSecret(name) ? concealed(name, value) : value };
      });
    },
    text: (text: string) => known.reduce((clean, value) => clean.replaceAll(value, '…'), text),
  });
}

function partsOf(pairs: readonly string[]): readonly HeaderPart[] {
  return pairs.flatMap((name, index) => (index % 2 === 0 ? [{ name, value: pairs[index + 1] ?? '' }] : []));
}

/** Keeps the scheme: `Basic …`. */
function concealed(name: string, value: string): string {
  const [, scheme] = /^([\w-]+) +\S/.exec(value) ?? [];
  return scheme !== undefined && name.endsWith('authorization') ? `${scheme} …` : '…';
}
