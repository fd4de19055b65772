/** `grpc.health.v1`: what the server says of itself (`''`) and of each of its services, which are ready together or not. */
import type { handleServerStreamingCall, handleUnaryCall, Server, ServerWritableStream } from '@grpc/grpc-js';
import type { GrpcLibrary } from './grpc-library.ts';

export interface Health {
  setServing(serving: boolean): void;
  /** Whoever watches is told no more: a server that stops would wait for them. */
  endWatches(): void;
}

interface Asked {
  readonly service: string;
}

interface Told {
  readonly status: 'SERVING' | 'NOT_SERVING' | 'SERVICE_UNKNOWN';
}

type Watch = ServerWritableStream<Asked, Told>;

/**
 * Starts with NOT_SERVING. The library's own service remembers every name that a client ever watched, repeats what has
 * not changed, and ends no watch; of it there is the definition.
 */
export function addHealth(server: Server, { grpc, health }: GrpcLibrary, services: readonly string[]): Health {
  const names = new Set(['', ...services]);
  const watches = new Set<Watch>();
  let status: Told['status'] = 'NOT_SERVING';

  const check: handleUnaryCall<Asked, Told> = ({ request: { service } }, callback) => {
    if (names.has(service)) callback(null, { status });
    else callback({ code: grpc.status.NOT_FOUND, details: `there is no service ${JSON.stringify(service)} here` });
  };

  const watch: handleServerStreamingCall<Asked, Told> = (call) => {
    watches.add(call);
    call.once('cancelled', () => watches.delete(call));
    call.write({ status: names.has(call.request.service) ? status : 'SERVICE_UNKNOWN' });
  };

  const list: handleUnaryCall<object, { readonly statuses: Readonly<Record<string, Told>> }> = (_call, callback) =>
    callback(null, { statuses: Object.fromEntries([...names].map((name) => [name, { status }])) });

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
