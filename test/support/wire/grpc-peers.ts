/** A gRPC service and a client, with messages of plain bytes, so that no protocol file is needed. */
import {
  type CallOptions,
  Client,
  type ClientDuplexStream,
  type ClientReadableStream,
  type ClientWritableStream,
  credentials,
  Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServiceError,
  type StatusObject,
} from '@grpc/grpc-js';
import type { Served, TestServers } from '../serve.ts';

type Stream = ServerDuplexStream<Buffer, Buffer>;

/** Handles a call of any kind as a stream in both directions. */
export type HandleCall = (call: Stream) => void;

export interface GrpcService extends Served {
  /** The metadata of all calls so far. */
  readonly calls: readonly Metadata[];
  /** Calls that the client has cancelled, or whose deadline has passed. */
  readonly cancelled: () => number;
  readonly server: Server;
}

const same = (bytes: Buffer) => bytes;

/** `methods`: by path, such as `/shop.Carts/Add`. */
export async function startGrpcService(
  servers: TestServers,
  methods: Readonly<Record<string, HandleCall>>,
  port = 0,
): Promise<GrpcService> {
  const server = new Server({ 'grpc.max_receive_message_length': -1, 'grpc.max_send_message_length': -1 });
  const calls: Metadata[] = [];
  let cancelled = 0;
  for (const [path, handle] of Object.entries(methods)) {
    const definition = {
      path,
      requestStream: true,
      responseStream: true,
      requestSerialize: same,
      requestDeserialize: same,
      responseSerialize: same,
      responseDeserialize: same,
    };
    server.addService(
      { call: definition },
      {
        call(call: Stream) {
          calls.push(call.metadata);
          call
            .on('error', () => {})
            .on('cancelled', () => {
              cancelled += 1;
            });
          handle(call);
        },
      },
    );
  }
  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error, found) =>
      error === null ? resolve(found) : reject(error),
    );
  });
  servers.later(() => server.forceShutdown());
  return { origin: `http://127.0.0.1:${bound}`, port: bound, calls, cancelled: () => cancelled, server };
}

/** Collects the messages of the client and then responds with what `respond` makes of them. */
export function unary(respond: (message: Buffer, call: Stream) => Buffer): HandleCall {
  return (call) => {
    const messages: Buffer[] = [];
    call.on('data', (message: Buffer) => void messages.push(message));
    call.on('end', () => {
      call.write(respond(Buffer.concat(messages), call));
      call.end();
    });
  };
}

/** Ends the call with a status before any message. */
export function failing(code: number, details = '', metadata = new Metadata()): HandleCall {
  return (call) => {
    call.resume();
    call.emit('error', { code, details, metadata });
  };
}

export interface CallResult {
  readonly message: Buffer | undefined;
  readonly code: number;
  readonly details: string;
  readonly headers: Metadata | undefined;
  readonly trailers: Metadata;
}

export interface GrpcClient {
  readonly unary: (path: string, message?: Buffer | string, options?: UnaryOptions) => Promise<CallResult>;
  readonly download: (path: string, message?: Buffer | string) => ClientReadableStream<Buffer>;
  readonly upload: (path: string) => ClientWritableStream<Buffer> & { readonly result: Promise<CallResult> };
  readonly chat: (path: string, options?: CallOptions) => ClientDuplexStream<Buffer, Buffer>;
}

interface UnaryOptions extends CallOptions {
  readonly metadata?: Metadata;
}

/** Closes its connection with the servers. Does not repeat calls by itself. */
export function connectGrpc(servers: TestServers, { port }: { readonly port: number }): GrpcClient {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), {
    'grpc.enable_retries': 0,
    'grpc.max_receive_message_length': -1,
    'grpc.max_send_message_length': -1,
    'grpc.use_local_subchannel_pool': 1,
  });
  servers.later(() => client.close());

  return {
    unary: (path, message = '', { metadata = new Metadata(), ...options } = {}) =>
      new Promise((resolve) => {
        let headers: Metadata | undefined;
        let status: StatusObject | undefined;
        let result: { readonly error: ServiceError | null; readonly message: Buffer | undefined } | undefined;
        const done = () => {
          if (status !== undefined && result !== undefined) resolve(resultOf(status, headers, result.message));
        };
        client
          .makeUnaryRequest(path, same, same, Buffer.from(message), metadata, options, (error, found) => {
            result = { error, message: found };
            done();
          })
          .on('metadata', (found) => {
            headers = found;
          })
          .on('status', (found) => {
            status = found;
            done();
          });
      }),
    download: (path, message = '') => client.makeServerStreamRequest(path, same, same, Buffer.from(message)),
    upload(path) {
      let settle = (_: CallResult) => {};
      const result = new Promise<CallResult>((resolve) => {
        settle = resolve;
      });
      let message: Buffer | undefined;
      const call = client.makeClientStreamRequest(path, same, same, (_error: unknown, found?: Buffer) => {
        message = found;
      });
      call.on('status', (status: StatusObject) => queueMicrotask(() => settle(resultOf(status, undefined, message))));
      return Object.assign(call, { result });
    },
    chat: (path, options = {}) => client.makeBidiStreamRequest(path, same, same, options),
  };
}

function resultOf(
  { code, details, metadata: trailers }: StatusObject,
  headers: Metadata | undefined,
  message: Buffer | undefined,
): CallResult {
  return { code, details, headers, trailers, message };
}

/** The messages of a stream, and its status at the end. */
export async function readAll(call: ClientReadableStream<Buffer> | ClientDuplexStream<Buffer, Buffer>) {
  const messages: Buffer[] = [];
  const status = new Promise<StatusObject>((resolve) => call.on('status', resolve));
  call.on('error', () => {}).on('data', (message: Buffer) => void messages.push(message));
  return { messages, ...(await status) };
}
