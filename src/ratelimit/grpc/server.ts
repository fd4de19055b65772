/** `serveRateLimit`: the gRPC server for rate limiting, loaded on demand and stopped gracefully. */
import { type AddressInfo, createServer, type Server as Listener, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { ServerInterceptor, ServerOptions } from '@grpc/grpc-js';
import { delayMsMax, type Logger, listenError } from '#foundation';
import { requestBytesMax } from '#ratelimit/limit';
import type { Limiter } from '../limiter.ts';
import { createBoundedPort, type PortBounds, portBounds, type ReportRefusal, watchStreams } from './bounds.ts';
import { addServices, loadGrpc } from './services.ts';

export interface RateLimitServerOptions {
  readonly limiter: Limiter;
  /** @default '127.0.0.1' */
  readonly host?: string;
  /** 0 picks a free port. */
  readonly port: number;
  /** Lets other threads listen on the port too. @default false */
  readonly reusePort?: boolean;
  readonly logger: Pick<Logger, 'error'>;
  /** @default portBounds */
  readonly bounds?: Partial<PortBounds>;
  /** Called for every connection that the port closes and every call that it rejects. */
  readonly onRefused?: ReportRefusal;
  /** Decides whether to accept a connection. @default all are accepted */
  readonly admit?: (socket: Socket) => boolean;
  /** Called when a connection becomes busy with its first call, or idle after its last one. */
  readonly setIdle?: (socket: Socket, isIdle: boolean) => void;
}

export interface RateLimitServer {
  readonly port: number;
  /** Sets the status that the health service reports, initially SERVING. */
  setServing(serving: boolean): void;
  /**
   * Stops accepting calls, and aborts those still running after `deadlineMs`. Safe to call more than once.
   * @default 5_000
   */
  close(deadlineMs?: number): Promise<void>;
}

/** If it cannot listen, rejects with an error that has the system's `code` (such as EADDRINUSE) and names a remedy. */
export async function serveRateLimit(options: RateLimitServerOptions): Promise<RateLimitServer> {
  if (typeof options.limiter?.shouldRateLimit !== 'function')
    throw new TypeError('the limiter has no function `shouldRateLimit`: use createLimiter');
  if (typeof options.logger?.error !== 'function')
    throw new TypeError('the logger has no function `error`: use a logger like pino');
  const library = await loadGrpc();
  const { Server, ServerCredentials } = library.grpc;
  const bounds = { ...portBounds, ...options.bounds };
  const { onRefused = () => {}, setIdle = () => {} } = options;
  const bounded = createBoundedPort(library.grpc, bounds, { report: onRefused, setIdle });
  const server = new Server(serverOptions(bounds, bounded.interceptor));
  const health = await addServices(server, library, options);
  // We listen ourselves, because the library would hide the system's error code and print to the console.
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const listener = createServer((socket) => {
    if (options.admit?.(socket) === false) socket.destroy();
    else if (bounded.admit(socket)) injector.injectConnection(socket);
  });
  const port = await listen(listener, options).catch((error: unknown) => {
    bounded.close();
    throw error;
  });
  // For example when the system lacks memory for a connection (ENOBUFS). The server continues with those it has.
  listener.on('error', (error) =>
    options.logger.error({ err: error }, 'the rate-limit server could not accept a connection'),
  );
  const stopWatching = watchStreams(port, onRefused);
  health.setServing(true);

  async function stop(deadlineMs: number): Promise<void> {
    health.setServing(false);
    health.endWatches();
    const closed = new Promise<void>((resolve) => listener.close(() => resolve()));
    // On Node 24, this callback does not wait for running calls. `closed` does: a connection ends with its last call.
    server.tryShutdown(() => {});
    for (const socket of bounded.sockets()) if (socket.bytesRead === 0) socket.destroy();
    const deadline = new AbortController();
    await Promise.race([
      closed,
      delay(Math.min(deadlineMs, delayMsMax), undefined, { signal: deadline.signal }).catch(() => {}),
    ]);
    deadline.abort();
    server.forceShutdown();
    for (const socket of bounded.sockets()) socket.destroy();
    await closed;
    stopWatching();
    bounded.close();
  }

  let stopped: Promise<void> | undefined;
  return Object.freeze({
    port,
    setServing: health.setServing,
    close(deadlineMs = 5_000): Promise<void> {
      stopped ??= stop(deadlineMs);
      return stopped;
    },
  });
}

function serverOptions({ callsMax, idleMs }: PortBounds, interceptor: ServerInterceptor): ServerOptions {
  return {
    interceptors: [interceptor],
    'grpc.max_receive_message_length': requestBytesMax,
    'grpc.max_concurrent_streams': callsMax,
    'grpc.max_connection_idle_ms': idleMs,
    // No `max_session_memory`: Node can abort the process after a connection has reached it. While a client does not
    // read, Node does not read its requests either.
    // These close the connection of a vanished client within a minute and a half.
    'grpc.keepalive_time_ms': 60_000,
    'grpc.keepalive_timeout_ms': 20_000,
    'grpc.enable_channelz': 0,
  };
}

function listen(
  listener: Listener,
  { host = '127.0.0.1', port, reusePort = false }: Pick<RateLimitServerOptions, 'host' | 'port' | 'reusePort'>,
): Promise<number> {
  return new Promise((resolve, reject) => {
    listener.once('error', (cause) => reject(listenError(cause, { host, port })));
    listener.listen({ host, port, reusePort }, () => resolve((listener.address() as AddressInfo).port));
  });
}
