/** Starts an HTTP server with size and time limits that shuts down gracefully. */
import type { IncomingMessage, RequestListener, Server } from 'node:http';
import { type AddressInfo, Server as NetServer } from 'node:net';
import type { SecureContextOptions, TLSSocket } from 'node:tls';
import { type Logger, listenError } from '#foundation';
import { type ConnectionShare, limitAdmission } from './admission.ts';
import { readClientCertificates } from './client-certificates.ts';
import { createClientErrorLog, requireHost, respondToClientErrors } from './client-errors.ts';
import { type Connections, type ConnectionsOptions, createConnections } from './connections.ts';
import { createFirstBytes } from './http2/preface.ts';
import { createHttp2Connections, type Http2Connections } from './http2/sessions.ts';
import { closeStalledResponses, limitBodyTime, lingerAfterEarlyResponses, sendContinueOnRead } from './node-fixes.ts';
import { nodeHttp } from './node-http.ts';
import { type Certificates, createTlsContexts, type ServerTls, type TlsContexts } from './tls-contexts.ts';
import { respondToTlsErrors } from './tls-errors.ts';
import type { Upgrades } from './upgrades.ts';

export interface HttpServerOptions {
  readonly handler: RequestListener;
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
  /** Lets other threads listen on the port too: the system distributes the connections. @default false */
  readonly reusePort?: boolean;
  /** The names of the settings for host and port, for the error message. */
  readonly hostSetting: string;
  readonly portSetting: string;
  readonly headerBytesMax: number;
  /** Also limits the TLS handshake. */
  readonly headerTimeoutMs: number;
  /** Limits the time for a body, unless `disableBodyTimeout` was called for the request. */
  readonly requestTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
  /** The number of requests of one connection that are processed concurrently. */
  readonly pipelineMax: number;
  readonly waitingMax?: ConnectionsOptions['waitingMax'];
  /** How long a client may stop reading its response before the connection is closed. 0 means no limit. */
  readonly responseIdleTimeoutMs: number;
  /**
   * The proxies that name the client of each connection with the PROXY protocol. Connections that do not begin with its
   * header, or come from others, are closed. @default undefined: connections begin with TLS or HTTP
   */
  readonly proxyProtocolFrom?: readonly string[] | undefined;
  /** Whether clients may speak HTTP/2: over TLS if they choose it, otherwise if they begin with it. @default false */
  readonly http2?: boolean | undefined;
  /**
   * Whether a gRPC call that is not served gets a status of gRPC. Its status of HTTP is then 200, which the callers of an
   * auth service take for permission, and the client of such a caller chooses the content type. @default true
   */
  readonly refusesInGrpc?: boolean | undefined;
  /** Undefined for plain HTTP. */
  readonly tls?: ServerTls | undefined;
  /** This server's share of a limit for several servers. @default no limit */
  readonly connectionShare?: ConnectionShare | undefined;
  /** The caller closes it in addition to the server. @default none: requests with `Upgrade` are ordinary requests */
  readonly upgrades?: Upgrades | undefined;
  /** Logs input that is not a valid request, and requests that are cut off by `close`. @default nothing is logged */
  readonly logger?: Pick<Logger, 'warn'>;
}

export interface HttpServer {
  readonly port: number;
  /** Replaces the certificates for new connections. Does nothing without TLS. */
  readonly replaceCertificates: (next: Certificates) => void;
  /** Stops accepting connections, lets running requests finish until the deadline, then closes their connections. */
  readonly close: (deadlineMs: number) => Promise<void>;
}

/** If it cannot listen on the port, rejects with a message that names the port and the remedy. */
export async function serveHttp(options: HttpServerOptions): Promise<HttpServer> {
  const { connectionShare: share, tls, logger, proxyProtocolFrom: proxies } = options;
  const contexts = tls && (await createTlsContexts(tls));
  const server = await createListener(options, contexts);
  const onLate = ({ socket }: IncomingMessage) => void server.emit('clientError', bodyIsLate(), socket);
  const handler = limitBodyTime(options.handler, options.requestTimeoutMs, onLate);
  const connections = createConnections(server, { ...options, handler, setIdle: share?.setIdle });
  const http2 = options.http2 ? createHttp2Connections({ ...options, ...http2EventsOf(share) }) : undefined;
  const serve = requireHost(server, connections.serve);
  server.on('request', serve).on(tls ? 'secureConnection' : 'connection', connections.add);
  if (http2 !== undefined && tls !== undefined) serveChosenProtocol(server, http2);
  const closeHandshakes = limitAdmission(server, share, {
    isTls: tls !== undefined,
    firstBytes: http2 && tls === undefined ? createFirstBytes(http2.accept, options.headerTimeoutMs) : undefined,
    refuse: (socket, end) => void (http2?.turnAway(socket) || connections.refuse(socket, end)),
    proxyProtocol: proxies && { proxies, timeoutMs: options.headerTimeoutMs, logger },
  });
  if (tls !== undefined) respondToTlsErrors(server, logger);
  if (tls?.clientCa !== undefined) readClientCertificates(server, logger);
  respondToClientErrors(server, connections.refuse, logger && createClientErrorLog(logger));
  sendContinueOnRead(server);
  closeStalledResponses(server, options.responseIdleTimeoutMs);
  lingerAfterEarlyResponses(server);
  await listening(server, options);
  const closing = { connections: http2 === undefined ? [connections] : [connections, http2], closeHandshakes };
  return Object.freeze({
    port: (server.address() as AddressInfo).port,
    replaceCertificates(next: Certificates) {
      if (contexts !== undefined) (server as SecureServer).setSecureContext?.(contexts.replace(next));
    },
    close: (deadlineMs: number) => closeServer(server, closing, deadlineMs, logger),
  });
}

function http2EventsOf(share: ConnectionShare | undefined) {
  return { setIdle: share?.setIdle, onConnection: share?.countHttp2, onRequest: share?.countHttp2Request };
}

function bodyIsLate(): Error {
  return Object.assign(new Error('Request timeout'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
}

/** Call it before other `secureConnection` listeners than those of HTTP/1.1 are added. */
function serveChosenProtocol(server: Server, { accept }: Http2Connections): void {
  const listeners = server.listeners('secureConnection') as ((socket: TLSSocket) => void)[];
  server.removeAllListeners('secureConnection').on('secureConnection', (socket: TLSSocket) => {
    if (socket.alpnProtocol === 'h2') accept(socket);
    else for (const listener of listeners) listener.call(server, socket);
  });
}

/** The additional method of servers from `https.createServer`. */
interface SecureServer extends Server {
  readonly setSecureContext?: (options: SecureContextOptions) => void;
}

/** After this time without data, TCP keep-alive probes the client. */
const tcpKeepAliveMs = 60_000;

async function createListener(
  { handler, upgrades, http2 = false, ...limits }: HttpServerOptions,
  contexts: TlsContexts | undefined,
): Promise<Server> {
  const settings = {
    // Always set, because by default Node hands over every request with `Upgrade` as soon as there is a listener.
    shouldUpgradeCallback: upgrades?.shouldUpgrade ?? (() => false),
    // `requireHost` checks this instead.
    requireHostHeader: false,
    maxHeaderSize: limits.headerBytesMax,
    headersTimeout: limits.headerTimeoutMs,
    requestTimeout: 0,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionsCheckingInterval: Math.min(1000, limits.headerTimeoutMs),
    // Detects clients that vanished silently: an event stream may not write anything for a long time.
    keepAlive: true,
    keepAliveInitialDelay: tcpKeepAliveMs,
  };
  const server =
    contexts === undefined
      ? nodeHttp.createServer(settings)
      : (await import('node:https')).createServer({
          ...settings,
          ...contexts.options,
          ...(http2 && { ALPNProtocols: ['h2', 'http/1.1'] }),
          handshakeTimeout: limits.headerTimeoutMs,
        });
  return upgrades === undefined ? server : server.on('upgrade', upgrades.listener(handler));
}

function listening(server: Server, options: HttpServerOptions): Promise<void> {
  const { host, port, reusePort = false } = options;
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => reject(listenError(cause, options)));
    server.listen({ host, port, reusePort }, resolve);
  });
}

interface Closing {
  readonly connections: readonly Pick<Connections, 'all' | 'drain'>[];
  readonly closeHandshakes: () => void;
}

/** Keeps idle connections open for a moment on shutdown, so that requests already on their way still get a response. */
const idleGraceMs = 250;

/**
 * Asks clients to send no further requests, and closes idle connections after a grace period. Node's own `close`
 * closes idle connections immediately, and waits for connections that have never sent a request.
 */
async function closeServer(
  server: Server,
  { connections, closeHandshakes }: Closing,
  deadlineMs: number,
  logger: HttpServerOptions['logger'],
): Promise<void> {
  const finished = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()));
  for (const { drain } of connections) drain();
  const startedAtMs = performance.now();
  // Idle times are measured up to the previous sweep, because after a busy period a sweep may run before data that has
  // arrived meanwhile is read.
  let lastSweepMs = startedAtMs;
  const open = () => connections.flatMap(({ all }) => [...all()]);
  const isGraceOver = (sinceMs: number) => lastSweepMs - Math.max(sinceMs, startedAtMs) >= idleGraceMs;
  const sweep = setInterval(() => {
    if (isGraceOver(startedAtMs)) closeHandshakes();
    for (const { requestCount, idleSinceMs, end } of open()) {
      if (requestCount() === 0 && isGraceOver(idleSinceMs())) end();
    }
    lastSweepMs = performance.now();
  }, 20);
  const deadline = setTimeout(() => {
    closeHandshakes();
    let requests = 0;
    for (const { socket, requestCount } of open()) {
      requests += requestCount();
      socket.destroy();
    }
    if (requests > 0) logger?.warn({ requests, afterMs: deadlineMs }, cutOff);
  }, deadlineMs);
  try {
    await finished;
  } finally {
    clearInterval(sweep);
    clearTimeout(deadline);
  }
  // Stops Node's timer that checks for late headers.
  server.close(() => {});
}

const cutOff = 'requests were cut off by the shutdown: if they need more time, raise SHUTDOWN_TIMEOUT_MS';
