/** A package of the protocol as a gRPC server needs it: its definition, read from its files, with our own codec in it. */
import { fileURLToPath } from 'node:url';
import type { MethodDefinition, PackageDefinition, ServiceDefinition } from '@grpc/proto-loader';
import type { GrpcLibrary } from './grpc-library.ts';
import type { Decision } from './limiter.ts';
import { createProtocol, type ProtocolName } from './protocol.ts';

export interface GrpcDefinition {
  /** For example `pb.lyft.ratelimit.RateLimitService`. */
  readonly service: string;
  /** The service in our own terms: its handler gets a `RateLimitRequest` and answers a `Decision`. */
  readonly definition: ServiceDefinition;
}

/** Takes some milliseconds. */
export function loadGrpcDefinition(name: ProtocolName, { protoLoader }: GrpcLibrary): GrpcDefinition {
  const { file, service, requests, decisions } = createProtocol(name);
  const packageDefinition = protoLoader.loadSync(file, {
    // The same two levels up from src/ratelimit and from dist/ratelimit.
    includeDirs: [fileURLToPath(new URL('../../proto', import.meta.url))],
  });
  return Object.freeze({
    service,
    // The generic codec makes an object of the message, and ours of that: it costs as much as the rest of a decision.
    definition: {
      ShouldRateLimit: {
        ...methodOf(packageDefinition, service),
        requestDeserialize: requests.parse,
        responseSerialize: (decision: object) => decisions.format(decision as Decision),
      },
    },
  });
}

function methodOf(packageDefinition: PackageDefinition, service: string): MethodDefinition<object, object> {
  const definition = packageDefinition[service];
  const method = definition === undefined || 'format' in definition ? undefined : definition['ShouldRateLimit'];
  if (method === undefined) throw new Error(`proto: no ${service}.ShouldRateLimit`);
  return method;
}
