/** The services on the rate-limit port: both packages of the protocol, health, and reflection over all of it. */
import type { handleUnaryCall, Server, ServiceError } from '@grpc/grpc-js';
import { checkBounds } from './check-request.ts';
import { loadGrpcDefinition } from './grpc-definition.ts';
import type { GrpcLibrary } from './grpc-library.ts';
import { addHealth, type Health } from './health.ts';
import {
  CountersUnavailable,
  type Decision,
  InvalidRequest,
  type Limiter,
  type Logger,
  type RateLimitRequest,
} from './limiter.ts';
import { addReflection } from './reflection.ts';

export interface GrpcServicesOptions {
  readonly limiter: Limiter;
  readonly logger: Pick<Logger, 'error'>;
}

export function addServices(server: Server, library: GrpcLibrary, options: GrpcServicesOptions): Health {
  const packages = [loadGrpcDefinition('v3', library), loadGrpcDefinition('lyft', library)];
  const handler = { ShouldRateLimit: shouldRateLimit(options, library.grpc.status) };
  for (const { definition } of packages) server.addService(definition, handler);
  addReflection(server, library);
  return addHealth(
    server,
    library,
    packages.map(({ service }) => service),
  );
}

type Status = GrpcLibrary['grpc']['status'];

/** A decision that is there at once is told at once: a promise would cost as much as the decision. */
function shouldRateLimit(
  { limiter, logger }: GrpcServicesOptions,
  status: Status,
): handleUnaryCall<RateLimitRequest, Decision> {
  return ({ request }, callback) => {
    const fail = (error: unknown) => callback(statusOf(error, status, logger));
    let decision: Decision | Promise<Decision>;
    try {
      checkBounds(request);
      decision = limiter.shouldRateLimit(request);
    } catch (error) {
      fail(error);
      return;
    }
    if (decision instanceof Promise) decision.then((later) => callback(null, later), fail);
    else callback(null, decision);
  };
}

/** Only what the asker did wrong is for the asker to read. */
function statusOf(error: unknown, status: Status, logger: Pick<Logger, 'error'>): Partial<ServiceError> {
  if (error instanceof InvalidRequest) return { code: status.INVALID_ARGUMENT, details: error.message };
  if (error instanceof CountersUnavailable) return { code: status.UNAVAILABLE, details: 'hits cannot be counted now' };
  logger.error({ err: error }, 'the rate-limit service could not decide');
  return { code: status.INTERNAL, details: 'the rate-limit service could not decide' };
}
