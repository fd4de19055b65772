/** The script of a page that calls a gRPC service with Connect and with grpc-web. `grpc-web.test.ts` bundles it. */
import { create, createFileRegistry, fromBinary, toBinary } from '@bufbuild/protobuf';
import { type FileDescriptorProto, FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { createGrpcWebTransport } from '@connectrpc/connect-web';
import { GrpcWebClientBase, MethodDescriptor, type MethodType, type RpcError } from 'grpc-web';

export interface Message {
  readonly payload?: { readonly body: Uint8Array };
}

/** What a call ended with: the sizes of the messages, and the code and the message of the error. */
export interface Outcome {
  readonly sizes: readonly number[];
  readonly error?: string;
}

interface TestService {
  readonly unaryCall: (request: object, options?: object) => Promise<Message>;
  readonly streamingOutputCall: (request: object, options?: object) => AsyncIterable<Message>;
}

interface Where {
  /** Of the gateway. */
  readonly origin: string;
  /** The descriptors of the service's files, in base64. */
  readonly files: readonly string[];
  readonly headers?: Record<string, string>;
}

/** Each calls one method with a message as JSON, and returns an outcome. */
Object.assign(globalThis, {
  unary: (where: Where, request: object) =>
    outcomeOf(async (add) => add(await connectTo(where).unaryCall(request, where))),
  stream: (where: Where, request: object) =>
    outcomeOf(async (add) => {
      for await (const message of connectTo(where).streamingOutputCall(request, where)) add(message);
    }),
  /** Cancels the stream after its first message. */
  cancel: (where: Where, request: object) =>
    outcomeOf(async (add) => {
      const controller = new AbortController();
      const options = { ...where, signal: controller.signal };
      for await (const message of connectTo(where).streamingOutputCall(request, options)) {
        add(message);
        controller.abort();
      }
    }),
  /** With Google's client, in base64. */
  unaryText: (where: Where, request: object) => textOutcome(where, request, 'UnaryCall'),
  streamText: (where: Where, request: object) => textOutcome(where, request, 'StreamingOutputCall'),
});

function serviceOf(files: readonly string[]) {
  const bytes = (text: string) => Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  const file = files.map((text) => qualifyNames(fromBinary(FileDescriptorProtoSchema, bytes(text))));
  const service = createFileRegistry(create(FileDescriptorSetSchema, { file })).getService('grpc.testing.TestService');
  if (service === undefined) throw new Error('the descriptors lack the service');
  return service;
}

/** In the descriptors of proto-loader, the types of fields have relative names. */
function qualifyNames(file: FileDescriptorProto): FileDescriptorProto {
  for (const field of file.messageType.flatMap((message) => message.field))
    if (field.typeName !== '') field.typeName = `.${file.package}.${field.typeName}`;
  return file;
}

function connectTo({ origin, files }: Where): TestService {
  const transport = createGrpcWebTransport({ baseUrl: origin });
  return createClient(serviceOf(files), transport) as unknown as TestService;
}

async function outcomeOf(call: (add: (message: Message) => void) => Promise<void>): Promise<Outcome> {
  const sizes: number[] = [];
  try {
    await call((message) => void sizes.push(sizeOf(message)));
    return { sizes };
  } catch (error) {
    const { code, rawMessage } = ConnectError.from(error);
    return { sizes, error: `${code} ${Code[code]}: ${rawMessage}` };
  }
}

function textOutcome({ origin, files, headers = {} }: Where, request: object, name: string): Promise<Outcome> {
  const method = serviceOf(files).methods.find((one) => one.name === name);
  if (method === undefined) throw new Error(`the service lacks ${name}`);
  const { input, output } = method;
  const descriptor = new MethodDescriptor<object, Message>(
    `/grpc.testing.TestService/${name}`,
    'server_streaming' satisfies (typeof MethodType)['SERVER_STREAMING'],
    Object,
    Object,
    (message: Record<string, unknown>) => toBinary(input, create(input, message)),
    (bytes: Uint8Array) => fromBinary(output, bytes),
  );
  const client = new GrpcWebClientBase({ format: 'text' });
  const sizes: number[] = [];
  return new Promise((resolve) => {
    client
      .serverStreaming(origin + descriptor.getName(), request, headers, descriptor)
      .on('data', (message) => void sizes.push(sizeOf(message)))
      .on('error', ({ code, message }: RpcError) => resolve({ sizes, error: `${code} ${message}` }))
      .on('end', () => resolve({ sizes }));
  });
}

function sizeOf({ payload }: Message): number {
  return payload?.body.length ?? 0;
}
