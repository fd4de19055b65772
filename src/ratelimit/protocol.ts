/** The protocol on the wire: both packages read and written here, and what tells them apart is a table. */
import { fileURLToPath } from 'node:url';
import { loadSync, type MethodDefinition, type PackageDefinition, type ServiceDefinition } from '@grpc/proto-loader';
import type { Decision, RateLimitRequest } from './limiter.ts';
import { createDecisionCodec } from './wire-decision.ts';
import { createRequestCodec } from './wire-request.ts';

export type ProtocolName = 'v3' | 'lyft';

export interface Protocol {
  /** For example `pb.lyft.ratelimit.RateLimitService`. */
  readonly service: string;
  /** The `:path` of a call: `/<service>/ShouldRateLimit`. */
  readonly path: string;
  /** The service in our own terms: its handler gets a `RateLimitRequest` and answers a `Decision`. */
  readonly definition: ServiceDefinition;
  encodeRequest(request: RateLimitRequest): Buffer;
  /** Throws for bytes that are no answer. */
  decodeDecision(bytes: Buffer): Decision;
}

/** The older package has the same messages with fewer fields. */
const packages = {
  v3: {
    file: 'envoy/service/ratelimit/v3/rls.proto',
    service: 'envoy.service.ratelimit.v3.RateLimitService',
    complete: true,
  },
  lyft: { file: 'ratelimit.proto', service: 'pb.lyft.ratelimit.RateLimitService', complete: false },
} as const satisfies Record<ProtocolName, object>;

/** Reads the package's files; takes some milliseconds. */
export function loadProtocol(name: ProtocolName): Protocol {
  const { file, service, complete } = packages[name];
  const definitions = loadSync(file, {
    // The same two levels up from src/ratelimit and from dist/ratelimit.
    includeDirs: [fileURLToPath(new URL('../../proto', import.meta.url))],
  });
  const method = methodOf(definitions, service);
  const requests = createRequestCodec(complete);
  const decisions = createDecisionCodec(complete);
  return Object.freeze({
    service,
    path: method.path,
    // The generic codec makes an object of the message, and ours of that: it costs as much as the rest of a decision.
    definition: {
      ShouldRateLimit: {
        ...method,
        requestDeserialize: requests.parse,
        responseSerialize: (decision: object) => decisions.format(decision as Decision),
      },
    },
    encodeRequest: requests.format,
    decodeDecision: decisions.parse,
  });
}

function methodOf(packageDefinition: PackageDefinition, service: string): MethodDefinition<object, object> {
  const definition = packageDefinition[service];
  const method = definition === undefined || 'format' in definition ? undefined : definition['ShouldRateLimit'];
  if (method === undefined) throw new Error(`proto: no ${service}.ShouldRateLimit`);
  return method;
}
