/** Envoy's ext_authz without our code: a client and a service over the library grpc-js, with Envoy's definitions. */
import { fileURLToPath } from 'node:url';
import { Client, credentials, Metadata, Server, type ServiceError, type sendUnaryData } from '@grpc/grpc-js';
import { loadSync, type ServiceDefinition } from '@grpc/proto-loader';
import type { Served, TestServers } from '../serve.ts';
import { listenKillable } from './killable-grpc-server.ts';

const file = fileURLToPath(new URL('../../fixtures/ext-authz/external_auth.proto', import.meta.url));
const definition = loadSync(file, { longs: Number })['envoy.service.auth.v3.Authorization'] as ServiceDefinition;
const method = definition['Check'];
if (method === undefined) throw new Error('the definitions have no method Check');
const { path, requestSerialize, responseDeserialize } = method;

/** The `http` attributes of a CheckRequest, as the library names them. */
export interface DescribedHttp {
  readonly id?: string;
  readonly method: string;
  readonly path: string;
  readonly host?: string;
  readonly scheme?: string;
  readonly query?: string;
  readonly protocol?: string;
  readonly size?: number;
  readonly body?: string;
  readonly rawBody?: Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface DescribedPeer {
  readonly address: { readonly socketAddress: { readonly address: string; readonly portValue?: number } };
  readonly principal?: string;
}

export interface Described {
  readonly source?: DescribedPeer;
  readonly destination?: DescribedPeer;
  readonly request: { readonly http: DescribedHttp };
  readonly contextExtensions?: Readonly<Record<string, string>>;
  readonly tlsSession?: { readonly sni: string };
}

export interface HeaderOption {
  readonly header: { readonly key: string; readonly value?: string; readonly rawValue?: Buffer };
  readonly append?: { readonly value: boolean };
  readonly appendAction?: number;
}

/** A CheckResponse, as the library names its parts. */
export interface ForeignAnswer {
  readonly status?: { readonly code?: number; readonly message?: string };
  readonly deniedResponse?: {
    readonly status?: { readonly code: number };
    readonly headers?: readonly HeaderOption[];
    readonly body?: string;
  };
  readonly okResponse?: {
    readonly headers?: readonly HeaderOption[];
    readonly headersToRemove?: readonly string[];
    readonly responseHeadersToAdd?: readonly HeaderOption[];
    readonly queryParametersToSet?: readonly { readonly key: string; readonly value: string }[];
    readonly queryParametersToRemove?: readonly string[];
  };
  readonly errorResponse?: object;
}

export interface ExtAuthzClient {
  /** Rejects with the gRPC status of a call without a response. */
  readonly check: (described: Described, metadata?: Readonly<Record<string, string>>) => Promise<ForeignAnswer>;
}

/** Closes the client after the test. */
export function connectExtAuthz(servers: TestServers, port: number): ExtAuthzClient {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  servers.later(() => client.close());
  return {
    check: (described, sent = {}) =>
      new Promise((resolve, reject) => {
        const metadata = new Metadata();
        for (const [name, value] of Object.entries(sent)) metadata.set(name, value);
        const done = (error: ServiceError | null, answer?: ForeignAnswer) =>
          error === null ? resolve(answer ?? {}) : reject(error);
        const deserialize = (bytes: Buffer) => responseDeserialize(bytes) as ForeignAnswer;
        client.makeUnaryRequest(path, requestSerialize, deserialize, { attributes: described }, metadata, done);
      }),
  };
}

export interface ForeignExtAuthz extends Served {
  readonly asked: readonly Described[];
  /** The metadata of each call. */
  readonly metadata: readonly Metadata[];
}

/** @param decide returns the response, or throws a gRPC status */
export async function startExtAuthz(
  servers: TestServers,
  decide: (described: Described) => ForeignAnswer | Promise<ForeignAnswer>,
): Promise<ForeignExtAuthz> {
  const asked: Described[] = [];
  const metadata: Metadata[] = [];
  const server = new Server();
  server.addService(definition, {
    async Check(
      call: { readonly request: { readonly attributes: Described }; readonly metadata: Metadata },
      callback: sendUnaryData<ForeignAnswer>,
    ) {
      asked.push(call.request.attributes);
      metadata.push(call.metadata);
      try {
        callback(null, await decide(call.request.attributes));
      } catch (status) {
        callback(status as ServiceError);
      }
    },
  });
  const { port, stop } = await listenKillable(server);
  servers.later(stop);
  return { port, origin: `http://127.0.0.1:${port}`, asked, metadata };
}
