/** Fake gateway state for reading diagnostics, with one route, one error and one limit. */
import type { RouteSnapshot } from '#gateway';
import { createTraffic } from '../../src/gateway/traffic/traffic.ts';
import { labelled, mappingOf } from '../support/edge.ts';
import { domain, limit, node, unlimited } from '../support/limits.ts';

type Parts = Parameters<typeof import('#diag').readDiagnostics>[0];

export const hotelRoute: RouteSnapshot = {
  ...mappingOf(),
  mapping: mappingOf(),
  conditions: () => ['POST', 'host api.*'],
  auth: { record: { name: 'auth' } } as NonNullable<RouteSnapshot['auth']>,
  transport: {
    describe: () => 'in this process',
    cluster: undefined,
    timeouts: { timeoutMs: 3000, connectTimeoutMs: 2000, idleTimeoutMs: 1000 },
  },
  labels: [
    ...labelled('x-test'),
    {
      name: 'both',
      labels: [...labelled('x-user', 'user'), ...labelled('x-city', 'city')].flatMap((one) => one.labels),
    },
  ],
  source: { file: 'config/services/hotel.yaml', line: 9 },
  compression: undefined,
};

export const parts: Parts = {
  version: '1.2.3',
  uptimeMs: () => 61_999,
  clock: () => Date.UTC(2026, 0, 2, 3, 5, 0),
  clusters: () => [],
  connections: () => ({ open: 9_125, max: 9_126, refused: 0, idleClosed: 0, http2: 9_127, http2Requests: 9_128 }),
  tokenProviders: () => [],
  traffic: createTraffic(),
  usages: () => () => undefined,
  lastUncountedAtMs: () => undefined,
  gateway: () => ({
    routes: [hotelRoute],
    versions: [
      {
        kind: 'Version',
        name: 'first',
        prefix: '/v1',
        deprecatedAtMs: Date.UTC(2026, 5, 30),
        endsAtMs: undefined,
        successor: '/v2/',
        info: undefined,
        source: { file: 'config/services/versions.yaml', line: 1 },
      },
    ],
    services: [{ role: 'Mapping hotel', service: 'hotel', target: () => 'http://hotel:80' }],
    auth: { allowed: 3, denied: 2, error: 1 },
    ratelimit: { ok: 6, over: 5, error: 4 },
    domain: 'gateway',
    lastUnanswered: { auth: undefined, ratelimit: Date.UTC(2026, 0, 2, 3, 4, 30) },
  }),
  limits: () => [domain('gateway', node('user', limit(10), node('city=Paris', unlimited)), node('group=x'))],
  certificates: () => [],
  configuration: {
    kubernetes: () => undefined,
    refused: () => [
      {
        part: 'records' as const,
        consequence: 'records and limits stay as they were',
        errors: [],
        sinceMs: Date.UTC(2026, 0, 2, 3, 4, 6),
      },
    ],
    current: () => ({ number: 7, hash: '0123456789ab', appliedAtMs: Date.UTC(2026, 0, 2, 3, 4, 5) }),
    errors: () => [
      {
        source: { file: 'config/services/car.yaml', line: 4 },
        record: 'Mapping <car>',
        message: 'unknown key "prefx"',
        remedy: 'Write "prefix", or remove it.',
      },
    ],
    notices: () => [
      {
        source: { file: 'config/old.yaml', line: 0 },
        record: undefined,
        message: '"old.yaml" is not read',
        remedy: 'Remove it.',
      },
    ],
  },
};
