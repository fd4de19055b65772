/** The providers in use: shares those with equal records between configurations, and finds the user of a request. */
import type * as Jose from 'jose';
import type { JwtProvider } from '#config';
import { createOncePerMinute, isMap, sortedJson, truncate } from '#foundation';
import type { TokenCounts, TokenProviderState, TokenVerdict, TokenVerifier } from '../token-verifier.ts';
import type { KeySetOptions } from './key-set.ts';
import { createPlaces, type Place, type TokenRequest } from './places.ts';
import { createProvider, type Provider, type TokenHeader, type Verified } from './provider.ts';
import { createVerifiedTokens } from './verified-tokens.ts';

interface Entry {
  readonly provider: Provider;
  uses: number;
}

export interface RegistryOptions extends KeySetOptions {
  readonly entriesMax: number;
  readonly jose: Pick<typeof Jose, 'jwtVerify' | 'errors'>;
}

export function createProviderRegistry(options: RegistryOptions) {
  const { logger, clock, entriesMax } = options;
  const entries = new Map<string, Entry>();
  const memory = createVerifiedTokens({ entriesMax, clock });
  const mayLog = createOncePerMinute();
  let unknown = 0;

  function onUnknown(issuer: string | undefined): void {
    unknown += 1;
    if (mayLog())
      logger.warn(
        { issuer: issuer && truncate(issuer, issuerLengthMax) },
        'a token was rejected: it is malformed, or no JwtProvider has its issuer',
      );
  }

  function acquire(record: JwtProvider): readonly [string, Entry] {
    const key = keyOf(record);
    const known = entries.get(key);
    const entry = known ?? { provider: createProvider(record, { ...options, counts: countsOf(record) }), uses: 0 };
    entry.uses += 1;
    entries.set(key, entry);
    return [key, entry];
  }

  /** The counts of a provider continue when its record changes. */
  function countsOf({ name }: JwtProvider): TokenCounts {
    const same = [...entries.values()].find(({ provider }) => provider.record.name === name);
    return same?.provider.counts ?? createTokenCounts();
  }

  function release(key: string, entry: Entry): void {
    entry.uses -= 1;
    if (entry.uses > 0) return;
    entry.provider.close();
    entries.delete(key);
  }

  return Object.freeze({
    open(records: readonly JwtProvider[]) {
      const acquired = records.map(acquire);
      return Object.freeze({
        verifierOf(names: readonly string[]) {
          const used = acquired.map(([, { provider }]) => provider).filter(({ record }) => names.includes(record.name));
          return used.length === 0 ? undefined : createVerifier(used, { memory, onUnknown });
        },
        close() {
          for (const [key, entry] of acquired.splice(0)) release(key, entry);
        },
      });
    },
    /** If a record has just changed, its latest version. */
    states(): readonly TokenProviderState[] {
      const states = [...entries.values()].map(({ provider }) => provider.state());
      return [...new Map(states.map((state) => [state.record.name, state])).values()];
    },
    unknown: () => unknown,
    close() {
      for (const { provider } of entries.values()) provider.close();
      entries.clear();
    },
  });
}

/** Of an issuer in the log, which a client may have made up. */
const issuerLengthMax = 100;

/** Equal for records that differ only in where they are written. */
function keyOf({ source: _, ...record }: JwtProvider): string {
  return sortedJson(record);
}

function createTokenCounts(): TokenCounts {
  return { remembered: 0, valid: 0, invalid: 0, unknownKey: 0, unavailable: 0 };
}

/** Bounds the cost of decoding. */
const tokenLengthMax = 8192;

const refused: TokenVerdict = Object.freeze({ kind: 'token-refused', isExpired: false });
const expired: TokenVerdict = Object.freeze({ kind: 'token-refused', isExpired: true });

const countOf = {
  valid: 'valid',
  invalid: 'invalid',
  'unknown-key': 'unknownKey',
  unavailable: 'unavailable',
} as const;

interface VerifierParts {
  readonly memory: ReturnType<typeof createVerifiedTokens>;
  /** Called for a token that is malformed, or of no provider. */
  readonly onUnknown: (issuer: string | undefined) => void;
}

function createVerifier(providers: readonly Provider[], { memory, onUnknown }: VerifierParts): TokenVerifier {
  const places = createPlaces(providers);

  function verdictOf(request: TokenRequest): TokenVerdict | Promise<TokenVerdict> | undefined {
    const found = places.find(request);
    if (found === undefined) return undefined;
    const { token, place } = found;
    if (token.length > tokenLengthMax) return refuse(undefined);
    const key = memory.keyOf(token);
    const known = memory.find(key);
    if (known !== undefined && place.providers.get(known.provider.record.issuer) === known.provider) {
      known.provider.counts.remembered += 1;
      return known.user;
    }
    return verify(token, place, key);
  }

  function verify(token: string, place: Place<Provider>, key: string): TokenVerdict | Promise<TokenVerdict> {
    const read = readUnverified(token);
    const provider = read && place.providers.get(read.issuer);
    if (read === undefined || provider === undefined) return refuse(read?.issuer);
    return provider.verify(token, read).then((result) => {
      provider.counts[countOf[result.kind]] += 1;
      if (result.kind === 'valid') memory.add(key, token, { provider, ...result });
      return verdictFrom(result, provider);
    });
  }

  function refuse(issuer: string | undefined): TokenVerdict {
    onUnknown(issuer);
    return refused;
  }

  const claimHeaders = providers.flatMap(({ record }) => record.claimToHeaders.map(({ header }) => header));
  return Object.freeze({
    verdictOf,
    places: places.texts,
    providers: providers.map(({ record }) => record.name),
    claimHeaders: [...new Set(claimHeaders)],
    credentialHeaders: providers.flatMap(({ record }) => record.fromHeaders.map(({ name }) => name)),
    credentialParams: providers.flatMap(({ record }) => record.fromParams),
  });
}

function verdictFrom(result: Verified, { record }: Provider): TokenVerdict {
  switch (result.kind) {
    case 'valid':
      return result.user;
    case 'invalid':
      return result.isExpired ? expired : refused;
    case 'unknown-key':
      return refused;
    case 'unavailable':
      return { kind: 'token-unchecked', reason: `the keys of JwtProvider ${record.name} could not be read yet` };
  }
}

/** Only selects the provider and its keys: nothing of it is trusted before the signature has been verified. */
function readUnverified(token: string): (TokenHeader & { readonly issuer: string }) | undefined {
  const [header, payload] = token.split('.', 2).map(readPart);
  if (header === undefined || payload === undefined) return undefined;
  const { alg, kid } = header;
  const { iss: issuer } = payload;
  if (typeof alg !== 'string' || typeof issuer !== 'string' || (kid !== undefined && typeof kid !== 'string'))
    return undefined;
  return { alg, kid, issuer };
}

function readPart(part: string) {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString('utf8'));
    return isMap(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
