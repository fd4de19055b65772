/** A gRPC client that uses none of our proto files and learns about services only through reflection. */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { Client, credentials, type ServiceError } from '@grpc/grpc-js';
import {
  loadFileDescriptorSetFromBuffer,
  loadSync,
  type MethodDefinition,
  type PackageDefinition,
} from '@grpc/proto-loader';
import { protoPath as healthProto } from 'grpc-health-check';

export type ReflectionVersion = 'v1' | 'v1alpha';

/** The file to look up, by name or by a symbol in it. */
export interface FileQuery {
  readonly fileByFilename?: string;
  readonly fileContainingSymbol?: string;
}

export interface ReflectionClient {
  readonly listServices: (version: ReflectionVersion) => Promise<readonly string[]>;
  /** The files as serialized FileDescriptorProtos; empty for an unknown name. */
  readonly files: (version: ReflectionVersion, query: FileQuery) => Promise<readonly Buffer[]>;
  /** Calls a method. Rejects with the ServiceError of the call. */
  readonly call: (service: string, method: string, request: object) => Promise<object>;
  readonly checkHealth: (service: string) => Promise<object>;
  readonly close: () => void;
}

/** Shows messages as JSON does: names in camelCase, enums by name, absent fields left out. */
const asJson = { longs: Number, enums: String } as const;

/** @param url `grpc://host:port` */
export function createReflectionClient(url: string): ReflectionClient {
  const client = new Client(url.replace('grpc://', ''), credentials.createInsecure());
  const described = new Map<string, Promise<PackageDefinition>>();

  async function filesOf(version: ReflectionVersion, query: FileQuery): Promise<readonly Buffer[]> {
    const response = await reflect(client, version, query);
    return response.fileDescriptorResponse?.fileDescriptorProto ?? [];
  }

  async function describe(symbol: string): Promise<PackageDefinition> {
    const files = await filesOf('v1', { fileContainingSymbol: symbol });
    return loadFileDescriptorSetFromBuffer(Buffer.concat(files.map(asFieldOne)), asJson);
  }

  return {
    async listServices(version) {
      const response = await reflect(client, version, { listServices: '' });
      return (response.listServicesResponse?.service ?? []).map(({ name }) => name).sort();
    },
    async call(service, method, request) {
      const description = described.get(service) ?? describe(service);
      described.set(service, description);
      const message = renamed(request, inFiles) as object;
      return renamed(await callUnary(client, methodOf(await description, service, method), message), inJson) as object;
    },
    files: filesOf,
    checkHealth: (service) =>
      callUnary(client, methodOf(loadSync(healthProto, asJson), 'grpc.health.v1.Health', 'Check'), { service }),
    close: () => client.close(),
  };
}

interface ReflectionResponse {
  readonly listServicesResponse?: { readonly service?: readonly { readonly name: string }[] };
  readonly fileDescriptorResponse?: { readonly fileDescriptorProto?: readonly Buffer[] };
}

function reflect(client: Client, version: ReflectionVersion, request: object): Promise<ReflectionResponse> {
  const { path, requestSerialize, responseDeserialize } = reflectionMethod(version);
  const stream = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize);
  return new Promise((resolve, reject) => {
    stream.once('error', reject);
    stream.once('data', resolve);
    stream.write(request);
    stream.end();
  });
}

function reflectionMethod(version: ReflectionVersion): MethodDefinition<object, object> {
  const inside = dirname(createRequire(import.meta.url).resolve('@grpc/reflection'));
  const file = join(inside, `../proto/grpc/reflection/${version}/reflection.proto`);
  return methodOf(loadSync(file, asJson), `grpc.reflection.${version}.ServerReflection`, 'ServerReflectionInfo');
}

function methodOf(definition: PackageDefinition, service: string, method: string): MethodDefinition<object, object> {
  const found = definition[service];
  const one = found === undefined || 'format' in found ? undefined : found[method];
  if (one === undefined) throw new Error(`reflection does not list ${service}.${method}`);
  return one;
}

function callUnary(client: Client, method: MethodDefinition<object, object>, request: object): Promise<object> {
  return new Promise((resolve, reject) => {
    const settle = (error: ServiceError | null, response?: object) =>
      error === null ? resolve({ ...response }) : reject(error);
    client.makeUnaryRequest(method.path, method.requestSerialize, method.responseDeserialize, request, settle);
  });
}

/** A FileDescriptorSet contains only files: each is field 1, length-delimited (protobuf encoding). */
function asFieldOne(file: Buffer): Buffer {
  return Buffer.concat([Buffer.from([0x0a, ...varint(file.length)]), file]);
}

function varint(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(value >>> 7)];
}

/** Convert field names between proto files (snake_case) and JSON (camelCase, proto3 JSON mapping). */
const inFiles = (name: string) => name.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`);
const inJson = (name: string) => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

function renamed(value: unknown, rename: (name: string) => string): unknown {
  if (Array.isArray(value)) return value.map((item) => renamed(item, rename));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, content]) => [rename(name), renamed(content, rename)]));
}
