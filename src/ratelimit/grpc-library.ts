/** The libraries of a gRPC server, loaded late: a sixth of the start of a process, and most have no such server. */

export interface GrpcLibrary {
  readonly grpc: typeof import('@grpc/grpc-js');
  readonly protoLoader: typeof import('@grpc/proto-loader');
  readonly reflection: typeof import('@grpc/reflection');
  readonly health: typeof import('grpc-health-check');
}

export async function loadGrpc(): Promise<GrpcLibrary> {
  return {
    grpc: await import('@grpc/grpc-js'),
    protoLoader: await import('@grpc/proto-loader'),
    reflection: await import('@grpc/reflection'),
    health: await import('grpc-health-check'),
  };
}
