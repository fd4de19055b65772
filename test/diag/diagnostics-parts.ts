/** What a gateway with one route, one error and one limit hands to the diagnostics. */
import type { Route } from '#gateway';
import { limit, unlimited } from '../support/limits.ts';

type Parts = Parameters<typeof import('#diag').createDiagnostics>[0];

export const hotelRoute: Route = {
  name: 'hotel',
  prefix: '/v1/hotels',
  rewrite: '/',
  service: 'hotel',
  target: () => 'in this process',
  authenticated: true,
  describe: undefined,
  labels: [
    { name: 'a', labels: [{ name: 'x-test', header: 'x-test', omitIfNotPresent: true, default: '' }] },
    {
      name: 'b',
      labels: [
        { name: 'user', header: 'x-user', omitIfNotPresent: false, default: '' },
        { name: 'city', header: 'x-city', omitIfNotPresent: false, default: '' },
      ],
    },
  ],
  timeoutMs: 3000,
  forward: async () => {},
  source: { file: 'config/services/hotel.yaml', line: 9 },
};

const source = { file: 'config/ratelimit/x.yaml', line: 3 };

export const parts: Parts = {
  version: '1.2.3',
  uptimeMs: () => 61_999,
  gateway: () => ({
    routes: [hotelRoute],
    services: [{ role: 'Mapping hotel', service: 'hotel', target: () => 'http://hotel:80' }],
    auth: { allowed: 3, denied: 2, error: 1 },
    ratelimit: { ok: 6, over: 5, error: 4 },
  }),
  limits: [
    {
      domain: 'gateway',
      source,
      descriptors: [
        {
          key: 'user',
          value: undefined,
          limits: [limit(10)],
          shareThreshold: false,
          detailedMetric: false,
          source,
          descriptors: [
            {
              key: 'city',
              value: 'Paris',
              limits: [unlimited],
              shareThreshold: false,
              detailedMetric: false,
              descriptors: [],
              source,
            },
          ],
        },
        { key: 'group', value: 'x', limits: [], shareThreshold: false, detailedMetric: false, descriptors: [], source },
      ],
    },
  ],
  errors: [
    {
      source: { file: 'config/services/car.yaml', line: 4 },
      record: 'Mapping <car>',
      message: 'unknown key "prefx"',
      remedy: 'Write "prefix", or remove it.',
    },
  ],
};
