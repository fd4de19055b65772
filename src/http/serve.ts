/** A listening HTTP server: bounded in what it reads and how long it waits, and stopped without losing what runs. */
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { answerClientErrors } from './client-errors.ts';
import { inviteBodies } from './continue.ts';
import { endUntaken } from './untaken.ts';
import { upgradableRequest } from './upgrade-request.ts';
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
  /** How long an answer may wait for a client that takes nothing of it; 0: without end. */
  readonly answerIdleTimeoutMs: number;
  /** PEM texts; undefined: plain HTTP. */
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  /** Without them a request with `Upgrade` is an ordinary one. Who closes the server closes them as well. */
  readonly upgrades?: Upgrades | undefined;
}

export interface HttpServer {
  readonly port: number;
  /** Stops accepting, lets what runs finish for so long, then cuts it off. */
  readonly close: (deadlineMs: number) => Promise<void>;
}

/** Rejects when the port cannot be had, with a message that names it and the remedy. */
export async function serveHttp(options: HttpServerOptions): Promise<HttpServer> {
  const server = createListener(options);
  answerClientErrors(server);
  inviteBodies(server);
  endUntaken(server, options.answerIdleTimeoutMs);
  await listening(server, options);
  return Object.freeze({
    port: (server.address() as AddressInfo).port,
    close: (deadlineMs: number) => closed(server, deadlineMs),
  });
}

function createListener({ handler, tls, upgrades, ...limits }: HttpServerOptions): Server {
  const settings = {
    ...(upgrades && { IncomingMessage: upgradableRequest(upgrades.takes) }),
    maxHeaderSize: limits.headerBytesMax,
    headersTimeout: limits.headerTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionsCheckingInterval: Math.min(1000, limits.headerTimeoutMs),
  };
  const server =
    tls === undefined ? createServer(settings, handler) : createTlsServer({ ...settings, ...tls }, handler);
  return upgrades === undefined ? server : server.on('upgrade', upgrades.through(handler));
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

async function closed(server: Server, deadlineMs: number): Promise<void> {
  const finished = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  server.prependListener('request', (_request, response) => response.setHeader('Connection', 'close'));
  // A connection that falls idle only now would be kept alive, and waited for, until the deadline.
  const sweep = setInterval(() => server.closeIdleConnections(), 20);
  const deadline = setTimeout(() => server.closeAllConnections(), deadlineMs);
  await finished;
  clearInterval(sweep);
  clearTimeout(deadline);
}
