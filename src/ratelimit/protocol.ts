/** The protocol on the wire: both packages read and written here, and what tells them apart is a table. */
import { createDecisionCodec, type DecisionCodec } from './wire-decision.ts';
import { createRequestCodec, type RequestCodec } from './wire-request.ts';

export type ProtocolName = 'v3' | 'lyft';

export interface Protocol {
  /** Where the package is defined, below the folder `proto`. */
  readonly file: string;
  /** For example `pb.lyft.ratelimit.RateLimitService`. */
  readonly service: string;
  /** The `:path` of a call: `/<service>/ShouldRateLimit`. */
  readonly path: string;
  readonly requests: RequestCodec;
  readonly decisions: DecisionCodec;
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

/** Reads no file: who only asks needs neither the package's definition nor a library that reads it. */
export function createProtocol(name: ProtocolName): Protocol {
  const { file, service, complete } = packages[name];
  return Object.freeze({
    file,
    service,
    path: `/${service}/ShouldRateLimit`,
    requests: createRequestCodec(complete),
    decisions: createDecisionCodec(complete),
  });
}
