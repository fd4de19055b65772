/** Keeps a client on its part of a weighted group, by a hash of a header or a cookie. */
import { hash } from 'node:crypto';
import type { Sticky } from '#config';
import { cookieOf } from '#http';
import type { RequestAttributes } from './conditions.ts';

export interface Part {
  readonly name: string;
  readonly weight: number;
}

/**
 * Weighted rendezvous hashing: each part scores the client, and the highest score wins. A client moves only to a part
 * whose weight grew more, in proportion, than that of its own: a canary that grows keeps its clients, and takes only as
 * many as it needs. The hash has no key, because replicas and threads must agree, and a client may know its part.
 */
export function createStickyChoice(parts: readonly Part[]): (client: string) => number {
  return function choose(client) {
    let [best, index] = [-1, 0];
    for (const [at, { name, weight }] of parts.entries()) {
      const score = weight / -Math.log(fractionOf(`${name}\0${client}`));
      if (score > best) [best, index] = [score, at];
    }
    return index;
  };
}

const digits = 12;

/** Returns a number between 0 and 1, without either. */
function fractionOf(text: string): number {
  return (Number.parseInt(hash('sha256', text, 'hex').slice(0, digits), 16) + 0.5) / 16 ** digits;
}

/** Returns what identifies the client of a request. Undefined if the request does not have it. */
export function createClientOf({ kind, name }: Sticky): (attributes: RequestAttributes) => string | undefined {
  if (kind === 'cookie') return ({ headers }) => cookieOf(headers.cookie, name) || undefined;
  return ({ headers }) => {
    const value = Object.hasOwn(headers, name) ? headers[name] : undefined;
    return value === undefined ? undefined : String(value);
  };
}

/** Returns 128 random bits. They need not be secret. */
export function newClient(random: () => number): string {
  const word = () => Math.floor(random() * 2 ** 32).toString(16);
  return Array.from({ length: 4 }, () => word().padStart(8, '0')).join('');
}
