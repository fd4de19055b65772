/** A listening server, bounded in size and time, that stops without losing running requests. */
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { answerClientErrors } from './client-errors.ts';
import { createConnections } from './connections.ts';
import { endIdleAnswers, inviteBodies } from './node-fixes.ts';
import type { Upgrades } from './upgrades.ts';

export interface HttpServerOptions {
  readonly handler: RequestListener;
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
  /** The setting that chooses the port, for the message when it is taken. */
  readonly portSetting: string;
  readonly headerBytesMax: number;
  readonly headerTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
  /** How many requests of a connection are open at once. */
  readonly pipelineMax: number;
  /** How long a response may wait for a client that takes nothing of it; 0: without end. */
  readonly answerIdleTimeoutMs: number;
  /** PEM texts; undefined: plain HTTP. */
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  /** Closed by the caller, beside the server. @default none: a request with `Upgrade` is an ordinary one */
  readonly upgrades?: Upgrades | undefined;
}

export interface HttpServer {
  readonly port: number;
  /** Stops accepting, gives running requests the time to finish, then cuts them off. */
  readonly close: (deadlineMs: number) => Promise<void>;
}

/** Rejects when it cannot listen on the port, with a message that names it and the remedy. */
export async function serveHttp(options: HttpServerOptions): Promise<HttpServer> {
  const server = createListener(options);
  const connections = createConnections(options);
  server.on('request', connections.serve).on(options.tls ? 'secureConnection' : 'connection', connections.add);
  answerClientErrors(server);
  inviteBodies(server);
  endIdleAnswers(server, options.answerIdleTimeoutMs);
  await listening(server, options);
  return Object.freeze({
    port: (server.address() as AddressInfo).port,
    close: (deadlineMs: number) => closeServer(server, deadlineMs),
  });
}

function createListener({ handler, tls, upgrades, ...limits }: HttpServerOptions): Server {
  const settings = {
    ...(upgrades && { shouldUpgradeCallback: upgrades.shouldUpgrade }),
    maxHeaderSize: limits.headerBytesMax,
    headersTimeout: limits.headerTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionsCheckingInterval: Math.min(1000, limits.headerTimeoutMs),
  };
  const server = tls === undefined ? createServer(settings) : createTlsServer({ ...settings, ...tls });
  return upgrades === undefined ? server : server.on('upgrade', upgrades.listener(handler));
}

function listening(server: Server, { host, port, portSetting }: HttpServerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const remedy =
        cause.code === 'EADDRINUSE'
          ? `another process has it: stop that one, or choose another port with ${portSetting} (0 picks a free one)`
          : `choose another address with HOST or another port with ${portSetting}`;
      reject(new Error(`cannot listen on ${host}:${port} (${cause.code ?? cause.message}): ${remedy}`, { cause }));
    });
    server.listen({ host, port }, resolve);
  });
}

/** `server.close()` keeps waiting for connections that fall idle after the call (Node docs, `closeIdleConnections`). */
async function closeServer(server: Server, deadlineMs: number): Promise<void> {
  const finished = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  server.prependListener('request', (_request, response) => response.setHeader('Connection', 'close'));
  const sweep = setInterval(() => server.closeIdleConnections(), 20);
  const deadline = setTimeout(() => server.closeAllConnections(), deadlineMs);
  try {
    await finished;
  } finally {
    clearInterval(sweep);
    clearTimeout(deadline);
  }
}
