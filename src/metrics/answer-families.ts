/** What auth and rate-limit services answered. */
import type { GatewayCounts } from '#gateway';
import type { Family } from './exposition.ts';

export type DecisionParts = GatewayCounts;

export function createAnswerFamilies({ auth, ratelimit }: DecisionParts): readonly Family[] {
  return [
    {
      name: 'frontdesk_auth_decisions_total',
      type: 'counter',
      labels: ['result'],
      help: 'What auth services said of requests: `allowed`, `denied`, or `error` where they gave no answer.',
      samples: () => resultsOf(auth),
    },
    {
      name: 'frontdesk_ratelimit_decisions_total',
      type: 'counter',
      labels: ['result'],
      help: 'What the rate-limit service said of labelled requests: `ok`, `over`, or `error` where it gave no answer.',
      samples: () => resultsOf(ratelimit),
    },
  ];
}

function resultsOf(counts: GatewayCounts['auth'] | GatewayCounts['ratelimit']) {
  return Object.entries(counts).map(([result, value]) => ({ labels: { result }, value }));
}
