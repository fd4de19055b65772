/** Metrics of tokens (JWT) and of the keys that verify them. */
import type { TokenProviderState } from '#auth';
import { type Family, type MergeOfThreads, type Sample, samplesBy } from './registry.ts';

export interface TokenParts {
  readonly states: () => readonly TokenProviderState[];
  /** The number of tokens that are of no provider, or malformed. */
  readonly unknown: () => number;
}

/** `clock` returns milliseconds since the epoch. */
export function createTokenFamilies({ states, unknown }: TokenParts, clock: () => number): readonly Family[] {
  const each = (figureOf: (state: TokenProviderState) => number | undefined): readonly Sample[] =>
    states().flatMap((state) => {
      const value = figureOf(state);
      return value === undefined ? [] : [{ labels: { provider: state.record.name }, value }];
    });
  const gauge = (name: string, merge: MergeOfThreads, help: string, samples: Family['samples']): Family => {
    return { name, type: 'gauge', labels: ['provider'], help, merge, samples };
  };
  return [
    {
      name: 'frontdesk_auth_tokens_total',
      type: 'counter',
      labels: ['provider', 'result'],
      help: 'Tokens: `valid`, `remembered` from a verification before, `invalid`, `unknown_key` if no key of the issuer has signed it, or `unchecked` if there were no keys. `provider` is empty for tokens that are malformed or of no provider.',
      samples: () => (states().length === 0 ? [] : [...states().flatMap(resultsOf), unknownSample(unknown())]),
    },
    gauge('frontdesk_auth_keys', 'min', 'Usable keys of the provider, 0 while there have never been any.', () =>
      each(({ keySet }) => keySet.keys ?? 0),
    ),
    gauge(
      'frontdesk_auth_keys_age_seconds',
      'max',
      'Time since the keys of the provider were last read. No series for keys in the record, and before the first time.',
      () => each(({ keySet: { readAtMs } }) => (readAtMs === undefined ? undefined : (clock() - readAtMs) / 1000)),
    ),
    {
      name: 'frontdesk_auth_keys_failures_total',
      type: 'counter',
      labels: ['provider'],
      help: 'Failed attempts to read the keys of the provider.',
      samples: () => each(({ keySet }) => keySet.failures),
    },
  ];
}

function resultsOf({ record, counts }: TokenProviderState): readonly Sample[] {
  const { valid, remembered, invalid, unknownKey, unavailable } = counts;
  const results = { valid, remembered, invalid, unknown_key: unknownKey, unchecked: unavailable };
  return samplesBy('result', results).map(({ labels, value }) => ({
    labels: { provider: record.name, ...labels },
    value,
  }));
}

function unknownSample(value: number): Sample {
  return { labels: { provider: '', result: 'invalid' }, value };
}
