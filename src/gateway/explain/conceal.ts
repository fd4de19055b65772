/** Conceals credentials, and the values of headers that a record sets, in what stages say of a request. */
import { credentialHeaders } from '#config';
import { decodeHeader } from '#http';
import type { ConfiguredAuthService } from '../auth/stage.ts';

export interface HeaderPart {
  readonly name: string;
  readonly value: string;
}

/** The headers of a request that is explained. */
export interface ClientHeaders {
  /** Alternating names and values, as the client sent them. */
  readonly pairs: readonly string[];
  readonly conceal: Conceal;
}

/** Expects alternating names and values. Conceals credentials and the values of headers that a record sets. */
export type Conceal = (pairs: readonly string[], set?: readonly Named[]) => readonly HeaderPart[];

/** The name of a header that a record sets. */
export interface Named {
  readonly name: string;
}

export interface ConcealOptions {
  /** The headers of the client's request, as alternating names and values. */
  readonly pairs: readonly string[];
  /** Values that the gateway generates for each request, such as its id. */
  readonly generated: readonly string[];
  /** Headers in which clients send tokens and API keys, in lower case, besides the usual ones. */
  readonly tokenHeaders: readonly string[];
}

/** Returns the headers in which clients may send tokens. */
export function tokenHeadersOf(services: readonly ConfiguredAuthService[]): readonly string[] {
  return services.flatMap(({ tokens }) => tokens?.credentialHeaders ?? []);
}

/** Returns where clients may send tokens and API keys. */
export function credentialPlaces(services: readonly ConfiguredAuthService[]) {
  return {
    tokenHeaders: [...tokenHeadersOf(services), ...services.flatMap(({ record }) => record.apiKeyHeader || [])],
    tokenParams: services.flatMap(({ tokens }) => tokens?.credentialParams ?? []),
  };
}

export function createConceal({ pairs, generated, tokenHeaders }: ConcealOptions): Conceal {
  const mustConceal = (name: string) => isCredential(name) || tokenHeaders.includes(name.toLowerCase());
  const generatedOnly = new Set(generated.filter((value) => !pairs.includes(value)));
  return function conceal(shown, set = []) {
    const setNames = new Set(set.map(({ name }) => name.toLowerCase()));
    return partsOf(shown).map(({ name, value }) => {
      if (setNames.has(name.toLowerCase())) return { name, value: '…' };
      if (generatedOnly.has(value)) return { name, value: '(generated for each request)' };
      return { name, value: mustConceal(name) ? concealed(value) : decodeHeader(value) };
    });
  };
}

/** Conceals the values of these query parameters in a text that contains a URL, or a part of one. */
export function concealParams(text: string, params: readonly string[]): string {
  if (params.length === 0) return text;
  return text.replace(/([?&])([^=&#\s]+)=([^&#\s]*)/g, (whole, before: string, name: string) =>
    params.includes(decodedName(name)) ? `${before}${name}=…` : whole,
  );
}

function decodedName(name: string): string {
  return [...new URLSearchParams(name).keys()][0] ?? name;
}

/** Whether clients send credentials in this header. */
export function isCredential(name: string): boolean {
  return credentialHeaders.includes(name.toLowerCase());
}

/** Groups alternating names and values. */
export function partsOf(pairs: readonly string[]): readonly HeaderPart[] {
  return pairs.flatMap((name, index) => (index % 2 === 0 ? [{ name, value: pairs[index + 1] ?? '' }] : []));
}

/** Retains only the scheme: `Basic …`. */
function concealed(value: string): string {
  const [, scheme] = /^([\w-]+) +\S/.exec(value) ?? [];
  return scheme === undefined ? '…' : `${scheme} …`;
}
