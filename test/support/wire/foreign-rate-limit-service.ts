/** A rate-limit service without our proto files: its protocol is defined here, with fields that we do not know. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { fromJSON, type ServiceDefinition } from '@grpc/proto-loader';

export interface ForeignRateLimitService {
  readonly port: number;
  /** Stops without notifying clients, like a killed process. */
  readonly stop: () => void;
}

/** @param respond returns a `Response` of the protocol below; enum numbers are sent unchecked */
export async function startForeignRateLimitService(
  respond: () => object | Promise<object>,
): Promise<ForeignRateLimitService> {
  const server = new Server();
  server.addService(definition(), {
    async ShouldRateLimit(_call: unknown, callback: (error: null, response: object) => void): Promise<void> {
      callback(null, await respond());
    },
  });
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const sockets = new Set<Socket>();
  const listener = createServer((socket) => {
    sockets.add(socket);
    injector.injectConnection(socket);
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  return {
    port: (listener.address() as AddressInfo).port,
    stop() {
      listener.close();
      for (const socket of sockets) socket.destroy();
      server.forceShutdown();
    },
  };
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
