/** A listening server, bounded in size and time, that stops without losing running requests. */
import type { RequestListener, Server } from 'node:http';
import { type AddressInfo, Server as NetServer } from 'node:net';
import type { Logger } from '../log/log.ts';
import { type Accepted, acceptWithin } from './accept.ts';
import { createClientErrorLog } from './client-error-log.ts';
import { answerClientErrors, requireHost } from './client-errors.ts';
import type { ConnectionLimit } from './connection-limit.ts';
import { type Connections, createConnections } from './connections.ts';
import { endIdleAnswers, inviteBodies } from './node-fixes.ts';
import { nodeHttp } from './node-http.ts';
import { boundBodies, lingerOverBodies } from './request-bodies.ts';
import type { Upgrades } from './upgrades.ts';

export interface HttpServerOptions {
  readonly handler: RequestListener;
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
  /** The settings that chose them, for the message when it cannot listen there. */
  readonly hostSetting: string;
  readonly portSetting: string;
  readonly headerBytesMax: number;
  /** For a TLS handshake as well. */
  readonly headerTimeoutMs: number;
  /** For a body that no stage takes on. */
  readonly requestTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
  /** How many requests of a connection are open at once. */
  readonly pipelineMax: number;
  /** How many requests wait for their turn, over all connections. @default 10_000 */
  readonly waitingMax?: number | undefined;
  /** How long a response may wait for a client that takes nothing of it; 0: without end. */
  readonly answerIdleTimeoutMs: number;
  /** Undefined: plain HTTP. */
  readonly tls?: Certificate | undefined;
  /** Shared by several servers. @default every connection is taken */
  readonly connectionLimit?: ConnectionLimit | undefined;
  /** Closed by the caller, beside the server. @default none: a request with `Upgrade` is an ordinary one */
  readonly upgrades?: Upgrades | undefined;
  /** For what clients send that is no request. @default nothing is logged */
  readonly logger?: Pick<Logger, 'warn'>;
}

/** PEM texts. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

export interface HttpServer {
  readonly port: number;
  /** Under TLS: connections that come from now on see this certificate. */
  readonly renew: (certificate: Certificate) => void;
  /** Stops accepting, gives running requests the time to finish, then cuts them off. */
  readonly close: (deadlineMs: number) => Promise<void>;
}

/** Rejects when it cannot listen on the port, with a message that names it and the remedy. */
export async function serveHttp(options: HttpServerOptions): Promise<HttpServer> {
  const server = await createListener(options);
  const { connectionLimit: limit, tls, logger } = options;
  const connections = createConnections(server, { ...options, setIdle: limit?.setIdle });
  const serve = requireHost(server, connections.serve);
  server.on('request', serve).on(tls ? 'secureConnection' : 'connection', connections.add);
  const accepted = acceptWithin(server, { limit, isTls: tls !== undefined });
  answerClientErrors(server, connections.refuse, logger && createClientErrorLog(logger));
  inviteBodies(server);
  endIdleAnswers(server, options.answerIdleTimeoutMs);
  boundBodies(server, options.requestTimeoutMs);
  lingerOverBodies(server);
  await listening(server, options);
  return Object.freeze({
    port: (server.address() as AddressInfo).port,
    renew: (certificate: Certificate) => void (server as SecureServer).setSecureContext?.(certificate),
    close: (deadlineMs: number) => closeServer(server, { ...connections, ...accepted }, deadlineMs),
  });
}

/** As `https.createServer` returns it. */
interface SecureServer extends Server {
  readonly setSecureContext?: (certificate: Certificate) => void;
}

/** Without a byte for so long, TCP asks the client whether it is still there. */
const silentMs = 60_000;

async function createListener({ handler, tls, upgrades, ...limits }: HttpServerOptions): Promise<Server> {
  const settings = {
    // Always given: by default Node takes a request off HTTP as soon as anything listens for upgrades.
    shouldUpgradeCallback: upgrades?.shouldUpgrade ?? (() => false),
    // Checked here instead.
    requireHostHeader: false,
    maxHeaderSize: limits.headerBytesMax,
    headersTimeout: limits.headerTimeoutMs,
    requestTimeout: 0,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionsCheckingInterval: Math.min(1000, limits.headerTimeoutMs),
    // A client can vanish without a word, and a stream of events may have nothing to write that would fail.
    keepAlive: true,
    keepAliveInitialDelay: silentMs,
  };
  const server =
    tls === undefined
      ? nodeHttp.createServer(settings)
      : (await import('node:https')).createServer({ ...settings, ...tls, handshakeTimeout: limits.headerTimeoutMs });
  return upgrades === undefined ? server : server.on('upgrade', upgrades.listener(handler));
}

function listening(server: Server, options: HttpServerOptions): Promise<void> {
  const { host, port } = options;
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => reject(listenError(cause, options)));
    server.listen({ host, port }, resolve);
  });
}

/** Why a server of any protocol cannot listen, and the setting or the limit that helps. */
export function listenError(
  cause: NodeJS.ErrnoException,
  { host, port, hostSetting, portSetting }: Pick<HttpServerOptions, 'host' | 'port' | 'hostSetting' | 'portSetting'>,
): Error {
  const remedies: Readonly<Record<string, string>> = {
    EADDRINUSE: `another process has it: stop that one, or choose another port with ${portSetting} (0 picks a free one)`,
    EADDRNOTAVAIL: `this machine has no such address: choose one of its own with ${hostSetting}`,
    EACCES: `this user may not listen there: choose a port from 1024 on with ${portSetting}`,
    EMFILE: 'this process has as many open files as it may: raise the limit (ulimit -n)',
  };
  const remedy =
    remedies[cause.code ?? ''] ?? `choose another address with ${hostSetting} or another port with ${portSetting}`;
  return new Error(`cannot listen on ${host}:${port} (${cause.code ?? cause.message}): ${remedy}`, { cause });
}

/** Time for a request that is on its way on an idle connection: cut off, its client could not know what became of it. */
const farewellMs = 250;

/**
 * Every answer says `Connection: close`, and an idle connection is closed when it has brought no other request. Node's own
 * `close` cuts off idle connections at once, and waits for those that have never brought a request.
 */
async function closeServer(
  server: Server,
  { all, leave, closeHandshakes }: Pick<Connections, 'all' | 'leave'> & Accepted,
  deadlineMs: number,
): Promise<void> {
  const finished = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()));
  leave();
  const startedAtMs = performance.now();
  // What arrived while this process was busy has been read since the sweep before, not before this one.
  let lastSweepMs = startedAtMs;
  const isOver = (sinceMs: number) => lastSweepMs - Math.max(sinceMs, startedAtMs) >= farewellMs;
  const sweep = setInterval(() => {
    if (isOver(startedAtMs)) closeHandshakes();
    for (const { socket, responses, idleSinceMs } of all()) {
      if (responses.size === 0 && isOver(idleSinceMs)) socket.destroy();
    }
    lastSweepMs = performance.now();
  }, 20);
  const deadline = setTimeout(() => {
    closeHandshakes();
    for (const { socket } of all()) socket.destroy();
  }, deadlineMs);
  try {
    await finished;
  } finally {
    clearInterval(sweep);
    clearTimeout(deadline);
  }
  // Ends the timer that looks for late headers.
  server.close(() => {});
}
