/** A part of the test service of gRPC (`grpc-testing.proto`), served with grpc-js. */
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Server, ServerCredentials, type ServerWritableStream, type StatusObject } from '@grpc/grpc-js';
import { loadSync, type MessageTypeDefinition, type ServiceDefinition } from '@grpc/proto-loader';
import type { Served, TestServers } from '../serve.ts';
import { createDeferred } from '../waiting.ts';

export const grpcTestProto = fileURLToPath(new URL('grpc-testing.proto', import.meta.url));

const definitions = loadSync(grpcTestProto);

export const grpcTestDefinition = definitions['grpc.testing.TestService'] as ServiceDefinition;

/** The descriptors of the files. */
export const grpcTestFiles = (definitions['grpc.testing.Empty'] as MessageTypeDefinition<object, object>)
  .fileDescriptorProtos;

export interface GrpcTestService extends Served {
  /** Resolves when a client has cancelled a stream. */
  readonly cancelled: Promise<void>;
}

interface Request {
  readonly responseSize: number;
  readonly responseParameters: readonly { readonly size: number }[];
  readonly responseStatus: { readonly code: number; readonly message: string } | null;
}

interface Call {
  readonly request: Request;
}

type Reply = (error: Partial<StatusObject> | null, response?: object) => void;

/** EmptyCall responds after `beforeEmpty`. A stream of which a response of a negative size is requested does not end. */
export async function startGrpcTestService(
  servers: TestServers,
  beforeEmpty: () => unknown = () => {},
): Promise<GrpcTestService> {
  const cancelled = createDeferred();
  const server = new Server();
  server.addService(grpcTestDefinition, {
    async EmptyCall(_call: Call, reply: Reply): Promise<void> {
      await beforeEmpty();
      reply(null, {});
    },
    UnaryCall({ request }: Call, reply: Reply): void {
      const error = errorOf(request);
      if (error === undefined) reply(null, responseOf(request.responseSize));
      else reply(error);
    },
    StreamingOutputCall(call: ServerWritableStream<Request, object>): void {
      call.on('cancelled', cancelled.resolve);
      const sizes = call.request.responseParameters.map(({ size }) => size);
      for (const size of sizes.filter((one) => one >= 0)) call.write(responseOf(size));
      const error = errorOf(call.request);
      if (error !== undefined) call.emit('error', error);
      else if (sizes.every((size) => size >= 0)) call.end();
    },
  });
  const port = await promisify(server.bindAsync.bind(server))('127.0.0.1:0', ServerCredentials.createInsecure());
  servers.later(() => server.forceShutdown());
  return { port, origin: `http://127.0.0.1:${port}`, cancelled: cancelled.promise };
}

function responseOf(size: number): object {
  return { payload: { body: Buffer.alloc(size, 'x') } };
}

function errorOf({ responseStatus: status }: Request): Partial<StatusObject> | undefined {
  return status ? { code: status.code, details: status.message } : undefined;
}
