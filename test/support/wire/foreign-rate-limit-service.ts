/** A rate-limit service without our proto files: its protocol is defined here, with fields that we do not know. */
import { Server } from '@grpc/grpc-js';
import { fromJSON, type ServiceDefinition } from '@grpc/proto-loader';
import { type KillableServer, listenKillable } from './killable-grpc-server.ts';

/** @param respond returns a `Response` of the protocol below; enum numbers are sent unchecked */
export async function startForeignRateLimitService(respond: () => object | Promise<object>): Promise<KillableServer> {
  const server = new Server();
  server.addService(definition(), {
    async ShouldRateLimit(_call: unknown, callback: (error: null, response: object) => void): Promise<void> {
      callback(null, await respond());
    },
  });
  return listenKillable(server);
}

const field = (type: string, id: number) => ({ type, id });
const list = (type: string, id: number) => ({ rule: 'repeated', type, id });

/** Enums are declared as int32, which is how they are encoded. */
const protocol = {
  RateLimitService: { methods: { ShouldRateLimit: { requestType: 'Request', responseType: 'Response' } } },
  Request: { fields: { domain: field('string', 1) } },
  Response: {
    fields: {
      overallCode: field('int32', 1),
      statuses: list('Status', 2),
      responseHeadersToAdd: list('Header', 3),
      dynamicMetadata: field('bytes', 6),
      quota: field('Quota', 7),
      tomorrow: field('string', 99),
    },
  },
  Status: {
    fields: {
      code: field('int32', 1),
      currentLimit: field('Limit', 2),
      limitRemaining: field('uint32', 3),
      durationUntilReset: field('Duration', 4),
      quota: field('Quota', 5),
    },
  },
  Limit: { fields: { requestsPerUnit: field('uint32', 1), unit: field('int32', 2), name: field('string', 3) } },
  Duration: { fields: { seconds: field('int64', 1), nanos: field('int32', 2) } },
  Header: { fields: { key: field('string', 1), value: field('string', 2), rawValue: field('bytes', 3) } },
  Quota: { fields: { requests: field('uint32', 1), id: field('string', 3) } },
} as const;

function definition(): ServiceDefinition {
  const nested = ['envoy', 'service', 'ratelimit', 'v3'].reduceRight<object>(
    (inner, name) => ({ nested: { [name]: inner } }),
    { nested: protocol },
  );
  const loaded = fromJSON({ ...nested } as Parameters<typeof fromJSON>[0])[
    'envoy.service.ratelimit.v3.RateLimitService'
  ];
  if (loaded === undefined || 'format' in loaded) throw new Error('the protocol has no RateLimitService');
  return loaded;
}
