/** A bounded connection pool for one address. Each connection is an undici client that carries one request at a time. */
import { createRequire } from 'node:module';
import { isIP } from 'node:net';
import type { buildConnector, Client, Dispatcher } from 'undici';
import type { MachineGuard } from '#http';
import { passOverContinue } from './undici-fixes.ts';

/** Reuses the last used connection, and queues requests if all are busy. */
export interface Pool {
  readonly run: (request: PooledRequest) => void;
  /** Removes the request from the queue, if it is still there. */
  readonly cancel: (request: PooledRequest) => void;
  /** Closes each connection as soon as it is idle. Later requests still run, each on a new connection. */
  readonly close: () => Promise<void>;
  /** Aborts all requests, including queued ones. Later requests fail. */
  readonly destroy: () => void;
}

export function createPool(options: ConnectionOptions, connectionsMax: number, parts: ConnectionParts): Pool {
  const queue = new Set<PooledRequest>();
  const connections = createConnections(options, connectionsMax, parts, onFree);

  function start(connection: Connection, request: PooledRequest): void {
    send(connection, request, () => onFree(connection));
  }

  /** Also called after an upgrade, which detaches the socket from the connection. The connection can open another. */
  function onFree(connection: Connection): void {
    if (connection.request === undefined) return;
    connection.request = undefined;
    if (queue.size > 0) startNext(connection);
    else connections.release(connection);
  }

  function startNext(connection: Connection): void {
    const [request] = queue;
    if (request === undefined) return;
    queue.delete(request);
    if (connections.isUsedUp(connection) || (request.isFresh && connection.isConnected)) {
      connections.drop(connection);
      run(request);
    } else start(connection, request);
  }

  function run(request: PooledRequest): void {
    const connection = connections.acquire(request.isFresh);
    if (connection === undefined) queue.add(request);
    else start(connection, request);
  }

  return Object.freeze({
    run,
    cancel: (request: PooledRequest) => void queue.delete(request),
    close: connections.close,
    destroy() {
      connections.destroy();
      const waiting = [...queue];
      queue.clear();
      for (const request of waiting) run(request);
    },
  });
}

/**
 * Tracks the open and the idle connections. We do not use undici's own Pool because it searches all its clients for
 * each request, keeps them forever, and loses a client when it rejects a request.
 */
function createConnections(
  options: ConnectionOptions,
  connectionsMax: number,
  parts: ConnectionParts,
  onFree: ConnectionListener['onFree'],
) {
  const idle: Connection[] = [];
  const all = new Set<Connection>();
  const listener: ConnectionListener = { onFree, onClosed };
  let connector: Connector | undefined;
  let closing = 0;
  let closed: Promise<void> | undefined;
  let isDestroyed = false;
  let whenEmpty = () => {};

  function open(): Connection | undefined {
    if (all.size >= connectionsMax) return undefined;
    connector ??= createConnector(options);
    const connection = openConnection(options, connector, listener, parts);
    all.add(connection);
    // A destroyed client rejects the request, which then fails like any other.
    if (isDestroyed) dropNow(connection);
    return connection;
  }

  function isUsedUp({ isBroken, expiresAtMs }: Connection): boolean {
    return isBroken || parts.clock() >= expiresAtMs;
  }

  /** Returns the last used idle connection, closing those whose lifetime is over. */
  function reuse(): Connection | undefined {
    for (let connection = idle.pop(); connection !== undefined; connection = idle.pop()) {
      if (!isUsedUp(connection)) return connection;
      drop(connection);
    }
    return undefined;
  }

  /** Opens a new connection, closing an idle one if the pool is full. */
  function openFresh(): Connection | undefined {
    const connection = open();
    const oldest = connection === undefined ? idle.shift() : undefined;
    if (oldest === undefined) return connection;
    drop(oldest);
    return open();
  }

  function onClosed(connection: Connection): void {
    const index = connection.request === undefined ? idle.indexOf(connection) : -1;
    if (index === -1) return;
    idle.splice(index, 1);
    drop(connection);
  }

  function drop(connection: Connection): void {
    const { client, isBroken } = connection;
    all.delete(connection);
    closing += 1;
    void (isBroken ? client.destroy() : client.close()).then(() => {
      closing -= 1;
      if (isEmpty()) whenEmpty();
    });
  }

  function dropNow(connection: Connection): void {
    connection.isBroken = true;
    drop(connection);
  }

  function isEmpty(): boolean {
    return all.size + closing === 0;
  }

  return {
    /** Returns the last used idle connection or a new one. Undefined if all connections are busy. */
    acquire: (isFresh: boolean) => (isFresh ? openFresh() : (reuse() ?? open())),
    /** Keeps the connection for later requests, or closes it if it has no socket. */
    release(connection: Connection) {
      if (connection.isConnected && closed === undefined) idle.push(connection);
      else drop(connection);
    },
    isUsedUp,
    drop,
    close() {
      closed ??= new Promise<void>((resolve) => {
        whenEmpty = resolve;
        for (const connection of idle.splice(0)) drop(connection);
        if (isEmpty()) resolve();
      });
      return closed;
    },
    destroy() {
      isDestroyed = true;
      for (const connection of all) dropNow(connection);
    },
  };
}

/** The settings of the connections to one address. */
export interface ConnectionOptions {
  /** Scheme, host and port. */
  readonly origin: string;
  /** The name that an HTTPS certificate must be valid for. Undefined for the host of the origin. */
  readonly serverName?: string | undefined;
  /** For HTTPS. Undefined to trust the authorities of the system, and to have no certificate. */
  readonly tls?: ClientTls | undefined;
  readonly connectTimeoutMs: number;
  /** How long an idle connection is kept. Undefined for the service's `Keep-Alive` time-out or a default. */
  readonly idleConnectionMs?: number | undefined;
  /** How long a connection gets new requests. 0 or undefined for no limit. */
  readonly connectionLifetimeMs?: number | undefined;
  /** Calls the service over HTTP/2. @default false */
  readonly http2?: boolean | undefined;
  /** Keeps connections away from this machine. Undefined if they may lead there. */
  readonly machineGuard?: MachineGuard | undefined;
}

/** In PEM format. */
export interface ClientTls {
  /** The authorities that may have issued the certificate of the service. Undefined for those of the system. */
  readonly ca: string | undefined;
  /** The certificate with which the service is called, and its key. */
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

export interface ConnectionParts {
  /** Returns the time in milliseconds. */
  readonly clock: () => number;
  /** Returns a number from 0 up to, but not including, 1. */
  readonly random: () => number;
  /** The largest status line and headers of a response, in bytes. Undefined for Node's limit, usually 16 KiB. */
  readonly headerBytesMax: number | undefined;
}

/** A request in the pool: queued or in flight. */
export interface PooledRequest {
  readonly options: Dispatcher.DispatchOptions;
  readonly handler: Dispatcher.DispatchHandler;
  /** True if the request needs a new connection. */
  readonly isFresh: boolean;
  readonly withoutTracing: WithoutTracing | undefined;
  /** What carries it. Counts the sockets that it has opened so far. */
  connection: { readonly socketsOpened: number } | undefined;
  /** The value of `socketsOpened` when the request was sent, or 0 if no socket was open then. */
  openSocket: number;
}

/**
 * Runs a request outside the instrumentation of HTTP clients, if there is any. Otherwise it would add a second
 * `traceparent`, and a service that receives two ignores both.
 */
export type WithoutTracing = (run: () => void) => void;

interface Connection {
  readonly client: Client;
  /** The `serverName` of the connector. */
  readonly serverName: string | undefined;
  /** The number of sockets that the client has opened so far. */
  socketsOpened: number;
  isConnected: boolean;
  /** From then on the connection gets no new requests. */
  expiresAtMs: number;
  /**
   * The last socket could not be opened, and the client must not be used again: after a certificate for the wrong name,
   * an undici client stays busy forever.
   */
  isBroken: boolean;
  request: PooledRequest | undefined;
}

interface ConnectionListener {
  /** Called when the request has ended, or has detached the socket for another protocol. */
  readonly onFree: (connection: Connection) => void;
  /** Called when the socket has closed. */
  readonly onClosed: (connection: Connection) => void;
}

/** Less than the 2 s of gunicorn and the 5 s of Node and Apache, so that usually our side closes an idle connection. */
const idleConnectionMsDefault = 1500;

/** The cap on the service's `Keep-Alive` time-out, and the margin that is subtracted for the network's latency. */
const keepAliveMsMax = 60_000;
const keepAliveMarginMs = 1000;

function openConnection(
  { origin, idleConnectionMs, connectionLifetimeMs }: ConnectionOptions,
  { connect, serverName }: Connector,
  { onFree, onClosed }: ConnectionListener,
  { clock, random, headerBytesMax: maxHeaderSize }: ConnectionParts,
): Connection {
  // Varies by a tenth, so that connections that opened together are not replaced together.
  const lifetimeMs = (connectionLifetimeMs || Number.POSITIVE_INFINITY) * (1 - random() / 10);
  const client = new (loadUndici().Client)(origin, {
    connect,
    pipelining: 1,
    keepAliveTimeout: idleConnectionMs ?? idleConnectionMsDefault,
    keepAliveMaxTimeout: Math.max(1, idleConnectionMs ?? keepAliveMsMax),
    keepAliveTimeoutThreshold: keepAliveMarginMs,
    headersTimeout: 0,
    bodyTimeout: 0,
    ...(maxHeaderSize && { maxHeaderSize }),
  });
  const connection: Connection = {
    client,
    serverName,
    socketsOpened: 0,
    isConnected: false,
    expiresAtMs: Number.POSITIVE_INFINITY,
    isBroken: false,
    request: undefined,
  };
  client.on('connect', () => {
    passOverContinue(client);
    connection.socketsOpened += 1;
    connection.isConnected = true;
    connection.expiresAtMs = clock() + lifetimeMs;
  });
  client.on('disconnect', () => {
    connection.isConnected = false;
    onClosed(connection);
  });
  client.on('connectionError', () => {
    connection.isBroken = true;
    onFree(connection);
  });
  client.on('drain', () => onFree(connection));
  return connection;
}

/**
 * Sends a request and reports when the connection is free again. Usually the client emits `drain` for that. It does not
 * when it rejects the request immediately, or is no longer busy after an immediate abort. In these cases this function
 * calls `onFree`, after any `drain` that may still follow.
 */
function send(connection: Connection, request: PooledRequest, onFree: () => void): void {
  request.connection = connection;
  request.openSocket = connection.isConnected ? connection.socketsOpened : 0;
  connection.request = request;
  const { withoutTracing, handler } = request;
  const options = withServerName(request.options, connection.serverName);
  if (withoutTracing === undefined) connection.client.dispatch(options, handler);
  else withoutTracing(() => void connection.client.dispatch(options, handler));
  if (connection.client.stats.size === 0) queueMicrotask(() => void (connection.request === request && onFree()));
}

/** True if the request reused an open socket. Only correct until the connection opens its next socket. */
export function usedOpenSocket({ connection, openSocket }: PooledRequest): boolean {
  return connection !== undefined && openSocket !== 0 && connection.socketsOpened === openSocket;
}

/** Adds the `servername` option, which undici's types lack. */
export function withServerName(
  options: Dispatcher.DispatchOptions,
  servername: string | undefined,
): Dispatcher.DispatchOptions {
  return servername === undefined ? options : Object.assign({}, options, { servername });
}

interface Connector {
  readonly connect: buildConnector.connector;
  /**
   * Must be set on each request. Otherwise undici derives the name from `Host`, and reconnects when it changes.
   * Undefined without TLS.
   */
  readonly serverName: string | undefined;
}

/** Does not offer HTTP/2: over HTTP/2, undici provides no raw headers and resends requests on its own. */
export function createConnector(options: ConnectionOptions): Connector {
  const { origin, serverName, tls, connectTimeoutMs, machineGuard } = options;
  const { protocol, hostname } = new URL(origin);
  // Created once, because parsing the authorities takes milliseconds.
  const secureContext = tls && loadTls().createSecureContext(tls);
  const opener = loadUndici().buildConnector({
    timeout: connectTimeoutMs,
    allowH2: false,
    ...(machineGuard && { lookup: machineGuard.lookup }),
    ...(secureContext && { secureContext }),
  });
  const connect = machineGuard === undefined ? opener : guarded(opener, hostname, machineGuard);
  if (protocol !== 'https:') return { connect, serverName: undefined };
  const verified = serverName ?? hostname;
  const servername = isIP(verified.replace(/^\[|\]$/g, '')) === 0 ? verified : '';
  return { connect: (options, callback) => connect({ ...options, servername }, callback), serverName: verified };
}

function guarded(
  connect: buildConnector.connector,
  hostname: string,
  { faultOf }: MachineGuard,
): buildConnector.connector {
  return (options, callback) => {
    const fault = faultOf(hostname);
    if (fault === undefined) connect(options, callback);
    else queueMicrotask(() => callback(fault, null));
  };
}

/** Loaded on demand, because a process without `tls` in a record does not need it itself. */
function loadTls(): typeof import('node:tls') {
  return createRequire(import.meta.url)('node:tls') as typeof import('node:tls');
}

/** Loads undici with the first connection, because a process without services over HTTP never needs it. */
export function loadUndici(): typeof import('undici') {
  return createRequire(import.meta.url)('undici') as typeof import('undici');
}
