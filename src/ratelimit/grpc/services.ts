/** The gRPC services of the rate-limit port: rate limiting in both protocol versions, health checks and reflection. */
import { readFileSync } from 'node:fs';
import type {
  handleServerStreamingCall,
  handleUnaryCall,
  Server,
  ServerWritableStream,
  ServiceError,
} from '@grpc/grpc-js';
import { type Logger, protobufFields } from '#foundation';
import {
  CountersUnavailable,
  checkBounds,
  type Decision,
  InvalidRequest,
  type Limiter,
  type RateLimitRequest,
} from '../limiter.ts';
import { loadCodec } from './codec.ts';

/**
 * The libraries of a gRPC server. They are loaded on demand, because they take a sixth of start-up time and most
 * processes have no such server.
 */
export interface GrpcLibrary {
  readonly grpc: typeof import('@grpc/grpc-js');
  readonly reflection: typeof import('@grpc/reflection');
  readonly health: typeof import('grpc-health-check');
}

export async function loadGrpc(): Promise<GrpcLibrary> {
  return {
    grpc: await import('@grpc/grpc-js'),
    reflection: await import('@grpc/reflection'),
    health: await import('grpc-health-check'),
  };
}

/**
 * Redirects the library's console output to our log. It drops the lines that contain the value of a non-ASCII header,
 * which may be secret. The library has a single logger for the whole process.
 */
function redirectLibraryLog({ setLogger }: GrpcLibrary['grpc'], logger: Pick<Logger, 'error'>): void {
  const error = (line: unknown): void => {
    if (!String(line).startsWith('Failed to add metadata entry'))
      logger.error({ line }, 'the gRPC library reported an error');
  };
  setLogger({ error });
}

export interface GrpcServicesOptions {
  readonly limiter: Limiter;
  readonly logger: Pick<Logger, 'error'>;
}

export async function addServices(
  server: Server,
  library: GrpcLibrary,
  options: GrpcServicesOptions,
): Promise<HealthService> {
  redirectLibraryLog(library.grpc, options.logger);
  const codecs = [await loadCodec('v3'), await loadCodec('lyft')];
  const handler = { ShouldRateLimit: shouldRateLimit(options, library.grpc.status) };
  for (const { definition } of codecs) server.addService(definition, handler);
  addReflection(server, library);
  return addHealth(
    server,
    library,
    codecs.map(({ service }) => service),
  );
}

type Status = GrpcLibrary['grpc']['status'];

/** Responds in the same turn if the limiter decides in it. */
function shouldRateLimit(
  { limiter, logger }: GrpcServicesOptions,
  status: Status,
): handleUnaryCall<RateLimitRequest, Decision> {
  return ({ request }, callback) => {
    const fail = (error: unknown) => callback(statusOf(error, status, logger));
    const respond = (decision: Decision) =>
      Array.isArray(decision?.statuses) ? callback(null, decision) : fail(new TypeError(noDecision));
    let decision: Decision | Promise<Decision>;
    try {
      checkBounds(request);
      decision = limiter.shouldRateLimit(request);
    } catch (error) {
      fail(error);
      return;
    }
    if (decision instanceof Promise) decision.then(respond, fail);
    else respond(decision);
  };
}

/** Logged for a custom limiter. On its own, the library would respond with an error without logging it. */
const noDecision = 'the limiter returned no decision: its result has no statuses';

/** Reveals only errors in the request to the client. */
function statusOf(error: unknown, status: Status, logger: Pick<Logger, 'error'>): Partial<ServiceError> {
  if (error instanceof InvalidRequest) return { code: status.INVALID_ARGUMENT, details: error.message };
  if (error instanceof CountersUnavailable)
    return { code: status.UNAVAILABLE, details: 'hits cannot be counted at the moment' };
  logger.error({ err: error }, 'the rate-limit service could not decide');
  return { code: status.INTERNAL, details: 'the rate-limit service could not decide' };
}

export interface HealthService {
  setServing(serving: boolean): void;
  /** Ends all watches, which would otherwise keep the server from stopping. */
  endWatches(): void;
}

interface HealthRequest {
  readonly service: string;
}

interface HealthResponse {
  readonly status: 'SERVING' | 'NOT_SERVING' | 'SERVICE_UNKNOWN';
}

type WatchCall = ServerWritableStream<HealthRequest, HealthResponse>;

/** Every watch uses memory until its client ends it. */
const watchesMax = 100;

/** Every watch stores the name of its service. */
const serviceNameMax = 256;

/**
 * Serves `grpc.health.v1` for the server itself (`''`, `ratelimit`) and each of its services, which always share one
 * status, initially NOT_SERVING. It uses only the definition of the library. The library's implementation never forgets
 * a watched name, repeats unchanged statuses, and never ends a watch.
 */
function addHealth(server: Server, { grpc, health }: GrpcLibrary, services: readonly string[]): HealthService {
  // envoyproxy/ratelimit uses the name `ratelimit`. Health checks configured for it work with this server too.
  const names = new Set(['', 'ratelimit', ...services]);
  const watches = new Set<WatchCall>();
  let status: HealthResponse['status'] = 'NOT_SERVING';

  const check: handleUnaryCall<HealthRequest, HealthResponse> = ({ request: { service } }, callback) => {
    if (names.has(service)) callback(null, { status });
    else callback({ code: grpc.status.NOT_FOUND, details: 'unknown service' });
  };

  const watch: handleServerStreamingCall<HealthRequest, HealthResponse> = (call) => {
    const refuse = (code: number, details: string): void => void call.emit('error', { code, details });
    if (watches.size >= watchesMax)
      return refuse(grpc.status.RESOURCE_EXHAUSTED, `there are already ${watchesMax} watches`);
    if (call.request.service.length > serviceNameMax)
      return refuse(grpc.status.INVALID_ARGUMENT, `the name of a service has at most ${serviceNameMax} characters`);
    watches.add(call);
    call.once('cancelled', () => watches.delete(call));
    call.write({ status: names.has(call.request.service) ? status : 'SERVICE_UNKNOWN' });
  };

  const list: handleUnaryCall<object, { readonly statuses: Readonly<Record<string, HealthResponse>> }> = (
    _call,
    callback,
  ) => callback(null, { statuses: Object.fromEntries([...names].map((name) => [name, { status }])) });

  server.addService(health.service, { check, watch, list });
  return Object.freeze({
    setServing(serving: boolean): void {
      const next = serving ? 'SERVING' : 'NOT_SERVING';
      if (next === status) return;
      status = next;
      for (const call of watches) if (names.has(call.request.service)) call.write({ status });
    },
    endWatches(): void {
      for (const call of watches) call.end();
      watches.clear();
    },
  });
}

/**
 * Serves both versions of reflection from descriptors compiled by protoc. The descriptors of proto-loader lack imports
 * and use JavaScript field names, so standard runtimes reject them. The path is the same from src/ratelimit/grpc and
 * from dist/ratelimit/grpc. After changing a proto file, run protoc 3.21 or newer:
 *
 *     protoc -Iproto -Igrpc=node_modules/grpc-health-check/proto -Inode_modules/@grpc/reflection/build/proto \
 *       --include_imports --descriptor_set_out=proto/descriptors.binpb \
 *       envoy/service/ratelimit/v3/rls.proto ratelimit.proto grpc/health/v1/health.proto \
 *       grpc/reflection/v1/reflection.proto grpc/reflection/v1alpha/reflection.proto
 */
function addReflection(server: Server, { reflection }: GrpcLibrary): void {
  const bytes = readFileSync(new URL('../../../proto/descriptors.binpb', import.meta.url));
  // The service uses only the file descriptors and ignores the other members of a definition.
  const format = 'Protocol Buffer 3 EnumDescriptorProto';
  const fileDescriptorProtos = protobufFields(bytes).flatMap(({ content }) => content ?? []);
  const files = { format, type: {}, fileDescriptorProtos } as const;
  new reflection.ReflectionService({ files }).addToServer(server);
}
