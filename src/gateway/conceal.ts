/** What looks like a credential is not shown: who explains a request may show the explanation to others. */
import { namesSecret } from '#config';
import type { HeaderPart } from './explanation.ts';

export interface Conceal {
  /** Pairs of names and values in turn. */
  readonly headers: (pairs: readonly string[]) => readonly HeaderPart[];
  /** Without the credentials that the client sent. */
  readonly text: (text: string) => string;
}

/** Shorter than these, they would be found in any text. */
const lengthMin = 4;

export interface ConcealOptions {
  /** Names and values in turn, of the client's request. */
  readonly pairs: readonly string[];
  /** Values of no meaning unless the client sent them: each request gets others. */
  readonly made: readonly string[];
  /** Lower-case names that may read like a secret's, and say who somebody is. */
  readonly identityHeaders: readonly string[];
}

export function createConceal({ pairs, made, identityHeaders }: ConcealOptions): Conceal {
  const open = new Set([...identityHeaders, 'x-envoy-auth-partial-body']);
  const isSecret = (name: string) => namesSecret(name) && !open.has(name);
  const known = pairs
    .filter((_, index) => index % 2 === 1 && isSecret(pairs[index - 1] ?? ''))
    .flatMap((value) => [value, value.replace(/^\S+ +/, '')])
    .filter((value) => value.length >= lengthMin);
  const fleeting = new Set(made.filter((value) => !pairs.includes(value)));
  return Object.freeze({
    headers: (shown: readonly string[]) =>
      partsOf(shown).map(({ name, value }) => {
        if (fleeting.has(value)) return { name, value: '(made for each request)' };
        return { name, value: isSecret(name) ? concealed(name, value) : value };
      }),
    text: (text: string) => known.reduce((clean, value) => clean.replaceAll(value, '…'), text),
  });
}

function partsOf(pairs: readonly string[]): readonly HeaderPart[] {
  return pairs.flatMap((name, index) => (index % 2 === 0 ? [{ name, value: pairs[index + 1] ?? '' }] : []));
}

/** The scheme is left: `Basic …`. */
function concealed(name: string, value: string): string {
  const [, scheme] = /^([\w-]+) +\S/.exec(value) ?? [];
  return scheme !== undefined && name.endsWith('authorization') ? `${scheme} …` : '…';
}
