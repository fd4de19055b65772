/** Finds the token of a request, in the headers, cookies and query parameters that the providers name. */
import type { IncomingHttpHeaders } from 'node:http';
import type { JwtProvider } from '#config';
import { cookieOf } from '#http';

/** The parts of a request that may contain a token. */
export interface TokenRequest {
  readonly headers: IncomingHttpHeaders;
  /** The path and query. */
  readonly url: string;
}

/** Where a token may be, with the providers that look there. */
export interface Place<Provider> {
  /** `the header authorization after "Bearer"`. */
  readonly text: string;
  /** By issuer. */
  readonly providers: ReadonlyMap<string, Provider>;
}

export interface Found<Provider> {
  readonly token: string;
  readonly place: Place<Provider>;
}

interface Read<Provider> {
  readonly place: Place<Provider> & { readonly providers: Map<string, Provider> };
  readonly tokenOf: TokenOf;
}

/** Returns undefined if there is no token, and an empty text for an empty one. */
type TokenOf = (request: TokenRequest) => string | undefined;

export interface Places<Provider> {
  /** Looks in headers first, then in cookies, then in the query. The first place with a token decides. */
  readonly find: (request: TokenRequest) => Found<Provider> | undefined;
  readonly texts: readonly string[];
}

/** The providers must have different issuers. */
export function createPlaces<Provider extends { readonly record: JwtProvider }>(
  providers: readonly Provider[],
): Places<Provider> {
  const ofHeaders = readsOf(providers, headerPlaces);
  const ofOthers = [...readsOf(providers, cookiePlaces), ...readsOf(providers, queryPlaces)];
  return Object.freeze({
    find(request: TokenRequest) {
      // A browser sends an old cookie with every request, so it must not outdo credentials that someone has entered.
      return (
        findIn(ofHeaders, request) ??
        (request.headers.authorization === undefined ? findIn(ofOthers, request) : undefined)
      );
    },
    texts: [...ofHeaders, ...ofOthers].map(({ place }) => place.text),
  });
}

/** A place of one provider, with its text. */
type OwnPlace = readonly [text: string, tokenOf: TokenOf];

/** Providers that look in the same place share it. */
function readsOf<Provider extends { readonly record: JwtProvider }>(
  providers: readonly Provider[],
  placesOf: (record: JwtProvider) => readonly OwnPlace[],
): readonly Read<Provider>[] {
  const reads = new Map<string, Read<Provider>>();
  for (const provider of providers) {
    for (const [text, tokenOf] of placesOf(provider.record)) {
      const read = reads.get(text) ?? { place: { text, providers: new Map() }, tokenOf };
      read.place.providers.set(provider.record.issuer, provider);
      reads.set(text, read);
    }
  }
  return [...reads.values()];
}

function headerPlaces({ fromHeaders }: JwtProvider): readonly OwnPlace[] {
  return fromHeaders.map(({ name, prefix = name === 'authorization' ? 'Bearer' : '' }) => [
    `the header ${name}${prefix === '' ? '' : ` after "${prefix}"`}`,
    inHeader(name, prefix),
  ]);
}

function cookiePlaces({ fromCookies }: JwtProvider): readonly OwnPlace[] {
  return fromCookies.map((name) => [`the cookie ${name}`, inCookie(name)]);
}

function queryPlaces({ fromParams }: JwtProvider): readonly OwnPlace[] {
  return fromParams.map((name) => [`the query parameter ${name}`, inQuery(name)]);
}

function findIn<Provider>(reads: readonly Read<Provider>[], request: TokenRequest): Found<Provider> | undefined {
  for (const { place, tokenOf } of reads) {
    const token = tokenOf(request);
    if (token !== undefined) return { token, place };
  }
  return undefined;
}

/** The prefix is a word, such as the name of an authentication scheme, which ignores case (RFC 9110 section 11.1). */
function inHeader(name: string, prefix: string): TokenOf {
  const start = prefix.toLowerCase();
  return function tokenInHeader({ headers }) {
    const value = headers[name];
    if (typeof value !== 'string') return undefined;
    if (start === '') return value;
    const word = value.slice(0, start.length).toLowerCase();
    const rest = value.slice(start.length);
    return word === start && (rest === '' || rest.startsWith(' ')) ? rest.trim() : undefined;
  };
}

function inCookie(name: string): TokenOf {
  return ({ headers: { cookie } }) => cookieOf(cookie, name);
}

function inQuery(name: string): TokenOf {
  return function tokenInQuery({ url }) {
    const mark = url.indexOf('?');
    return mark === -1 ? undefined : (new URLSearchParams(url.slice(mark)).get(name) ?? undefined);
  };
}
