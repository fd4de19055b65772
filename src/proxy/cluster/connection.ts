/** One connection to one address: a client of undici that carries one request at a time, with TLS verified against the record's name. */
import { createRequire } from 'node:module';
import { isIP } from 'node:net';
import type { buildConnector, Client, Dispatcher } from 'undici';

/** How the connections to one address are made. */
export interface ConnectionOptions {
  /** Scheme, host and port. */
  readonly origin: string;
  /** The name that the certificate of an HTTPS address must show; undefined: the host of the origin. */
  readonly serverName: string | undefined;
  readonly connectTimeoutMs: number;
  /** How long it is kept idle; undefined: a default, or what the service says. */
  readonly idleConnectionMs?: number | undefined;
}

/** A request on its way through the pool. */
export interface PooledRequest {
  readonly options: Dispatcher.DispatchOptions;
  readonly handler: Dispatcher.DispatchHandler;
  /** True: it may not have a connection that was open before. */
  readonly isFresh: boolean;
  readonly withoutTracing: WithoutTracing | undefined;
  connection: Connection | undefined;
  /** Which socket of the connection it found open; 0: none. */
  foundSocket: number;
}

/**
 * Runs a request so that the instrumentation of HTTP clients, where there is any, leaves it alone: it would add a second
 * `traceparent`, and a service ignores both when there are two.
 */
export type WithoutTracing = (run: () => void) => void;

export interface Connection {
  readonly client: Client;
  /** As the connector has it. */
  readonly serverName: string | undefined;
  /** How many sockets the client has opened, one after the other. */
  sockets: number;
  isConnected: boolean;
  /**
   * The last socket could not be opened, and the client cannot be used again: after a certificate for another name
   * undici's client stays busy forever.
   */
  isBroken: boolean;
  request: PooledRequest | undefined;
}

export interface ConnectionListener {
  /** The request is over, or has taken the socket away for another protocol. */
  readonly onFree: (connection: Connection) => void;
  /** The socket has closed. */
  readonly onClosed: (connection: Connection) => void;
}

/** Below the 2 s of gunicorn and the 5 s of Node and Apache, so that an idle connection is usually closed from here. */
const idleConnectionMsDefault = 1500;

/** The most that a `Keep-Alive` of the service can ask for, of which the margin is for the way to it. */
const keepAliveMsMax = 60_000;
const keepAliveMarginMs = 1000;

export function openConnection(
  { origin, idleConnectionMs }: ConnectionOptions,
  { connect, serverName }: Connector,
  { onFree, onClosed }: ConnectionListener,
): Connection {
  const client = new (loadUndici().Client)(origin, {
    connect,
    pipelining: 1,
    keepAliveTimeout: idleConnectionMs ?? idleConnectionMsDefault,
    keepAliveMaxTimeout: Math.max(1, idleConnectionMs ?? keepAliveMsMax),
    keepAliveTimeoutThreshold: keepAliveMarginMs,
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const connection: Connection = {
    client,
    serverName,
    sockets: 0,
    isConnected: false,
    isBroken: false,
    request: undefined,
  };
  client.on('connect', () => {
    connection.sockets += 1;
    connection.isConnected = true;
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

export function createPooledRequest(
  options: Dispatcher.DispatchOptions,
  handler: Dispatcher.DispatchHandler,
  isFresh: boolean,
  withoutTracing?: WithoutTracing,
): PooledRequest {
  return { options, handler, isFresh, withoutTracing, connection: undefined, foundSocket: 0 };
}

/**
 * The client emits `drain` when it is free again, but not after a request that it refuses at once, and it is not always
 * busy after one that is aborted at once. Then `onFree` is called here, after any `drain` that may still follow.
 */
export function send(connection: Connection, request: PooledRequest, onFree: () => void): void {
  request.connection = connection;
  request.foundSocket = connection.isConnected ? connection.sockets : 0;
  connection.request = request;
  const { withoutTracing, handler } = request;
  const options = withServerName(request.options, connection.serverName);
  if (withoutTracing === undefined) connection.client.dispatch(options, handler);
  else withoutTracing(() => void connection.client.dispatch(options, handler));
  if (connection.client.stats.size === 0) queueMicrotask(() => void (connection.request === request && onFree()));
}

/** True when the request used a socket that was open before it. Only correct until the connection opens its next socket. */
export function usedOpenSocket({ connection, foundSocket }: PooledRequest): boolean {
  return connection !== undefined && foundSocket !== 0 && connection.sockets === foundSocket;
}

/** undici's types do not have the option. */
export function withServerName(
  options: Dispatcher.DispatchOptions,
  servername: string | undefined,
): Dispatcher.DispatchOptions {
  return servername === undefined ? options : Object.assign({}, options, { servername });
}

export interface Connector {
  readonly connect: buildConnector.connector;
  /**
   * Must go with each request: undici takes the name from `Host` otherwise, and connects again when it changes.
   * Undefined without TLS.
   */
  readonly serverName: string | undefined;
}

/** HTTP/2 is not offered: over it undici gives no raw headers, and repeats requests on its own. */
export function createConnector({ origin, serverName, connectTimeoutMs }: ConnectionOptions): Connector {
  const { protocol, hostname } = new URL(origin);
  const connect = loadUndici().buildConnector({ timeout: connectTimeoutMs, allowH2: false });
  if (protocol !== 'https:') return { connect, serverName: undefined };
  const verified = serverName ?? hostname;
  const servername = isIP(verified.replace(/^\[|\]$/g, '')) === 0 ? verified : '';
  return { connect: (options, callback) => connect({ ...options, servername }, callback), serverName: verified };
}

/** Loaded when the first connection is made: 10 MB and a tenth of the start, which a process without proxying does not need. */
export function loadUndici(): typeof import('undici') {
  return createRequire(import.meta.url)('undici') as typeof import('undici');
}
