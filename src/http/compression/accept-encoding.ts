/** Chooses the content coding of a response by `Accept-Encoding` (RFC 9110 section 12.5.3). */
import { createBoundedMap } from '#foundation';
import { type Coding, codings } from './codings.ts';

const cachedMax = 256;
const lengthMax = 1024;

/**
 * Returns a function that returns undefined for a client that prefers the body as it is, or has sent no header or one
 * that is too long. Caches results, because most headers repeat.
 */
export function createChooseCoding(): (acceptEncoding: string | undefined) => Coding | undefined {
  const cache = createBoundedMap<string, Coding | 'identity'>(cachedMax);
  return function chooseCoding(header = '') {
    if (header === '' || header.length > lengthMax) return undefined;
    const chosen = cache.getOrCreate(header, () => negotiate(header) ?? 'identity');
    return chosen === 'identity' ? undefined : chosen;
  };
}

/** The client's preferences decide. Among equals, the order of `codings` does. */
function negotiate(header: string): Coding | undefined {
  const qualities = qualitiesOf(header);
  let best: Coding | undefined;
  let bestQuality = 0;
  for (const coding of codings) {
    const quality = qualities.get(coding) ?? 0;
    if (quality > bestQuality) [best, bestQuality] = [coding, quality];
  }
  return bestQuality >= (qualities.get('identity') ?? 0) ? best : undefined;
}

/** Leaves out members that are malformed. `*` stands for gzip, which every client that sends it can decode. */
function qualitiesOf(header: string): ReadonlyMap<string, number> {
  const qualities = new Map<string, number>();
  for (const member of header.toLowerCase().split(',')) {
    const [, name, quality = '1'] = grammar.exec(member) ?? [];
    if (name !== undefined) qualities.set(name === 'x-gzip' ? 'gzip' : name, Number(quality));
  }
  const others = qualities.get('*');
  if (others !== undefined && !qualities.has('gzip')) qualities.set('gzip', others);
  return qualities;
}

const grammar = /^\s*([\w!#$%&'*+.^`|~-]+)\s*(?:;\s*q\s*=\s*(0(?:\.\d*)?|\.\d+|1(?:\.0*)?)\s*)?$/;
