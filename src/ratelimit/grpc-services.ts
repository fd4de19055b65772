/** The services on the rate-limit port: both packages of the protocol, health, and reflection over all of it. */
import { type handleUnaryCall, type Server, type ServiceError, status } from '@grpc/grpc-js';
import { HealthImplementation } from 'grpc-health-check';
import { checkBounds } from './check-request.ts';
import { InvalidRequest } from './invalid-request.ts';
import type { Decision, Limiter, RateLimitRequest } from './limiter.ts';
import { NotCounted } from './not-counted.ts';
import { loadProtocol } from './protocol.ts';
import { addReflection } from './reflection.ts';

/** pino's shape, as far as it is needed. */
export interface ErrorLogger {
  error(fields: object, message?: string): void;
}

export interface GrpcServicesOptions {
  readonly limiter: Limiter;
  readonly logger: ErrorLogger;
}

/** What the health service says, of the server as a whole (`''`) and of each rate-limit service. */
export interface Health {
  setServing(serving: boolean): void;
}

export function addServices(server: Server, options: GrpcServicesOptions): Health {
  const protocols = [loadProtocol('v3'), loadProtocol('lyft')];
  const handler = { ShouldRateLimit: shouldRateLimit(options) };
  for (const { definition } of protocols) server.addService(definition, handler);

  const health = new HealthImplementation();
  health.addToServer(server);
  addReflection(server);

  let told: boolean | undefined;
  return Object.freeze({
    setServing(serving: boolean): void {
      // Who watches hears of every status that is set, and is to hear only of changes.
      if (serving === told) return;
      told = serving;
      for (const name of ['', ...protocols.map(({ service }) => service)])
        health.setStatus(name, serving ? 'SERVING' : 'NOT_SERVING');
    },
  });
}

/** A decision that is there at once is told at once: a promise would cost as much as the decision. */
function shouldRateLimit({ limiter, logger }: GrpcServicesOptions): handleUnaryCall<RateLimitRequest, Decision> {
  return ({ request }, callback) => {
    const fail = (error: unknown) => callback(statusOf(error, logger));
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
function statusOf(error: unknown, logger: ErrorLogger): Partial<ServiceError> {
  if (error instanceof InvalidRequest) return { code: status.INVALID_ARGUMENT, details: error.message };
  if (error instanceof NotCounted) return { code: status.UNAVAILABLE, details: 'hits cannot be counted now' };
  logger.error({ err: error }, 'the rate-limit service could not decide');
  return { code: status.INTERNAL, details: 'the rate-limit service could not decide' };
}
